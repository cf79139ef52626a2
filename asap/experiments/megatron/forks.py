"""What a script of a fork of Megatron-LM says besides: arguments that Megatron-LM does not have, and the DeepSpeed
configuration that those of Megatron-DeepSpeed name, which decides ZeRO, offloading and precision
(deepspeedai/DeepSpeed, ``runtime/config.py``).
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.files.documents import Brought, NamedFile, below_variable, find_brought, find_named
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.remarks import decides
from asap.experiments.shell import options
from asap.stacks.deepspeed.stack import OFFLOAD, STAGE
from asap.stacks.megatron.releases import ZERO
from asap.stacks.registry import irrelevant, spec
from asap.stacks.stack_settings import StackSettings, dotted, nearest

_NESTED = re.compile(r"\$\([^()]*\)")
_NEGATIONS = ("no_", "disable_")
_MOST_LISTED = 6
_EXPERTS = re.compile(r"(?:^|_)(?:num|n|number_of)_(?:\w+_)?experts$|(?:^|_)experts_(?:num|count|number)$")
_MEETING = re.compile(
    r"(?:^|_)(?:addr|address|port|host|hostfile|hostname|mpi|rdzv|(?:node|local|machine)_rank)(?:_|$)"
)
"""In names of arguments that say how processes find each other, and nothing of a step."""
_ONE = ("0", "1", "none", "null", "")


def foreign_arguments(command: str, of_run: bool) -> tuple[tuple[str, ...], bool]:
    """Arguments that Megatron-LM does not have, those that by their name decide the model first; and whether one gives
    a number of experts, by its name and value.

    Args:
        command: that takes them.
        of_run: whether it starts a run: what stands before its program is then a launcher's.
    """
    text = _NESTED.sub("", command)
    said = [one for one in options(text.partition(".py ")[2] if of_run else text) if not _is_known(one.name)]
    names = [key for key in dict.fromkeys(one.name for one in said) if not _MEETING.search(key)]
    counts = [one.words[0] for one in said if one.words and _EXPERTS.search(one.name)]
    return tuple(sorted(names, key=lambda key: not decides(key))), any(count not in _ONE for count in counts)


def note_on_foreign(foreign: Sequence[str]) -> str | None:
    """What a script does with arguments that Megatron-LM does not have; ``None`` where it has them all."""
    if not foreign:
        return None
    named = [
        f"{_option(key)} (did you mean {_option(near)}?)" if (near := nearest(key, _known())) else _option(key)
        for key in foreign
    ]
    most = max(_MOST_LISTED, sum(map(decides, foreign)))
    listed = plain(", ".join(named[:most]), 400) + (", …" if len(named) > most else "")
    return f"sets arguments that Megatron-LM does not have; their effect is unknown: {listed}"


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _is_known(key: str) -> bool:
    return any(form in _known() for form in (key, *(key.removeprefix(word) for word in _NEGATIONS)))


@cache
def _known() -> frozenset[str]:
    return spec("megatron").words() | irrelevant("megatron") | {*spec("megatron").switches}


_NAMED = "deepspeed_config"
_OPEN = re.compile(r"\$(?:\{[^{}]*\}|\(\([^()]*\)\)|\([^()]*\))")
_STAGES = ("0", "1", "2", "3")
_PRECISIONS = ("bf16", "fp16")


def with_configuration(
    settings: StackSettings, files: Brought, path: Path
) -> tuple[StackSettings, frozenset[str], tuple[str, ...]]:
    """The arguments with what the configuration decides, those that only a run can tell, and notes.

    Args:
        settings: arguments of Megatron-DeepSpeed.
        files: that come along with the script, or that it writes.
        path: the script.

    Raises:
        ConfigError: the configuration is malformed.
    """
    named = settings.text(_NAMED)
    if named is None:
        return settings, frozenset(), ()
    found = _find(named, files, path)
    values = {} if found is None else _values(found)
    stage = str(values.get(STAGE, 0)) if found else ""
    if stage not in _STAGES:
        if ZERO in settings:
            return settings, frozenset(), ()
        shown = plain(below_variable(named), 60)
        why = "is not there" if found is None else "leaves it to a run"
        return settings, frozenset((ZERO,)), (f"{shown}, which has the ZeRO stage, {why}",)
    said = {ZERO: stage} | {key: values[key] for key in OFFLOAD.values() if key in values}
    notes = []
    if ZERO in settings and str(settings[ZERO]) != stage:
        notes.append(
            f"--zero-stage is {plain(settings[ZERO], 10)}; stage {stage} of the DeepSpeed configuration is run"
        )
    precision = next((kind for kind in _PRECISIONS if values.get(f"{kind}.enabled") is True), None)
    if precision is not None and not settings.flag(precision):
        said |= {kind: kind == precision for kind in _PRECISIONS}
        notes.append(f"--{precision} is not said; {precision} of the DeepSpeed configuration is run")
    return settings.overridden(said), frozenset(), tuple(notes)


def _find(named: str, files: Brought, path: Path) -> NamedFile | None:
    if (text := find_brought(named, files)) is not None:
        return NamedFile(path.parent / Path(below_variable(named)).name, text) if text else None
    return find_named(below_variable(named), path)


def _values(found: NamedFile) -> Mapping[str, Any]:
    """Settings by dotted key; a value that a script fills in is a word."""
    text = _OPEN.sub("open", found.text).replace("\t", " ")
    values, _ = parse_yaml(text, str(found.path))
    if not isinstance(values, dict):
        raise ConfigError("is no configuration: it holds no keys with values", where=str(found.path))
    return dotted(values)
