"""How stages of Megatron's pipeline share the layers: a layout, numbers, ends with fewer layers."""

import re
from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.core.numbers import digits
from asap.core.text import plain
from asap.plans.degrees import degree
from asap.plans.layer_split import layers_of_last
from asap.plans.plan import Plan
from asap.stacks.megatron.forks import is_megatron_deepspeed, is_set

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


LAYER_IDS = "recompute_layer_ids"
_OF_ALL = "numbers of decoder layers, the first is 0, as in [0, 1, 2]"


def numbered_layers(arguments: Mapping[str, object], layers: int | None) -> frozenset[int]:
    """The decoder layers that are named; none where layers are recomputed otherwise.

    Args:
        arguments: by name.
        layers: decoder layers, where they are known. Layers that predict further tokens are counted after these.

    Raises:
        PlanError: something that is no number of a layer.
    """
    said = arguments.get(LAYER_IDS)
    if said is None or str(said).casefold() == "none":
        return frozenset()
    words = (
        list(map(str, said)) if isinstance(said, list | tuple) else str(said).strip("[]() ").replace(",", " ").split()
    )
    numbers = {word: digits(word) for word in words}
    if not numbers or any(number is None or number < 0 for number in numbers.values()):
        raise PlanError(
            f"{LAYER_IDS} must be {_OF_ALL}, not {plain(str(said), 40)!r}", hint=f"say it: {LAYER_IDS}=0,1,2"
        )
    found = {number for number in numbers.values() if number is not None}
    last = None if layers is None else layers - 1 + (digits(str(arguments.get("mtp_num_layers") or 0)) or 0)
    if last is not None and max(found) > last:
        raise PlanError(f"{LAYER_IDS} names layer {max(found)}, and the last one is {last}", hint="the first is 0")
    return frozenset(number for number in found if layers is None or number < layers)


FIRST, LAST = "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"
_OF_CORE = {FIRST: "num_layers_in_first_pipeline_stage", LAST: "num_layers_in_last_pipeline_stage"}
FIRST_AND_LAST = (*_OF_CORE, *_OF_CORE.values())
_STAGES = "pipeline_model_parallel_size"


def lays_out_stages(arguments: Mapping[str, object], layers: int | None, stages: int, repeats: int) -> bool:
    """Whether arguments say how many layers each stage has, in a way that Megatron's core accepts.

    Args:
        arguments: by name.
        layers: decoder layers.
        stages: of the pipeline.
        repeats: virtual stages of each.
    """
    if arguments.get(LAYOUT) is not None:
        return True
    ends = [count for names in _OF_CORE.items() if (count := _layers(arguments, names))]
    middle = stages - len(ends)
    if not ends or layers is None or middle < 0 or any(count % repeats for count in ends):
        return False
    rest = layers - sum(ends)
    return rest > 0 and rest % (middle * repeats) == 0 if middle else rest == 0


def layers_at_ends(plan: Plan, current: Mapping[str, object], layers: int | None) -> dict[str, str | bool]:
    """Arguments that leave the last stage what the others do not hold; none where stages divide the layers.

    Raises:
        PlanError: the launcher has no such stages, or none is left for the last.
    """
    stages, repeats = plan.degree("stage"), plan.pipeline_repeats
    if layers is None or stages == 1 or layers % (stages * repeats) == 0:
        return {}
    if stages == degree(current, _STAGES) and lays_out_stages(current, layers, stages, repeats):
        return {}
    last = layers_of_last(layers, stages)
    if repeats > 1 or last < 1 or is_megatron_deepspeed(current) or is_set(current, "use_legacy_models"):
        raise PlanError(f"{layers} layers do not divide into {stages} stages x {repeats}")
    return {FIRST: False, LAST: str(last)}


def in_words_of_core(arguments: Mapping[str, str | bool]) -> dict[str, str | bool]:
    """Arguments that change, under the names of Megatron's core; what is said wins over what is left out."""
    said = {_OF_CORE.get(key, key): value for key, value in arguments.items() if value is not False}
    return {name: said.get(name, False) for name in (_OF_CORE.get(key, key) for key in arguments)}


def _layers(arguments: Mapping[str, object], names: tuple[str, str]) -> int:
    """A number of layers under either name; 0 where none is said."""
    texts = (str(arguments[name]) for name in names if arguments.get(name) is not None)
    return next((int(text) for text in texts if text.isdecimal()), 0)
