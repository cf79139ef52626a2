"""Parts of a pipeline as Megatron-LM writes them: ``Et*3|(tt|)*29,m|L``
(``core/transformer/pipeline_parallel_layer_layout.py``), or as Megatron-Bridge does, a list of layers for each part."""

import re

from asap.core.errors import PlanError
from asap.core.text import plain

LAYOUT = "pipeline_model_parallel_layout"
_REPEATED = re.compile(r"\(([^()]+)\)\*(\d{1,4})", re.ASCII)
_WELL_FORMED = re.compile(r"[EtmL|*\d]+", re.ASCII)
_LONGEST = 2_000


def parts_of(layout: object) -> int:
    """How many parts a layout has, over all stages.

    Raises:
        PlanError: it is not one.
    """
    if isinstance(layout, list):
        return len(layout)
    text = str(layout).replace(",", "").replace("\\", "").replace(" ", "")
    if len(text) <= _LONGEST:
        text = _REPEATED.sub(lambda found: found[1] * int(found[2]), text)
    if not _WELL_FORMED.fullmatch(text):
        raise PlanError(f"{LAYOUT} {plain(str(layout), 40)} is no layout", hint='write it like "Et*3|(tt|)*29m|L"')
    return text.count("|") + 1


def repeats_of(layout: object, stages: int) -> int:
    """Virtual stages that each stage has under a layout; raises like :func:`parts_of`, and where they do not divide."""
    repeats, rest = divmod(parts_of(layout), stages)
    if rest or not repeats:
        raise PlanError(f"{LAYOUT} has {parts_of(layout)} parts, which {stages} stages do not divide")
    return repeats
