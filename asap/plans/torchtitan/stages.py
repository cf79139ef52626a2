"""Stages of a pipeline as torchtitan splits a model (``distributed/pipeline_parallel.py``), both ways.

What stands before the layers and what comes after them count as layers, by default as one each. The interleaved
schedule is PyTorch's (``torch/distributed/pipelining/schedules.py``).
"""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.degrees import degree
from asap.plans.plan import Plan

SCHEDULE, SCHEDULE_DEFAULT = "parallelism.pipeline_parallel_schedule", "1F1B"
LAYERS_EACH = "parallelism.pipeline_parallel_layers_per_stage"
AS_LAYERS = tuple(f"parallelism.pipeline_parallel_{end}_stage_less_layers" for end in ("first", "last"))
_AS_LAYERS_DEFAULT = 1
_LOOPED = ("interleaved1f1b", "loopedbfs", "zbvzerobubble", "dualpipev", "interleavedzerobubble")
_STAGES_OF_LOOPED = 2


def repeats_of(settings: Mapping[str, object], stages: int, layers: int | None) -> int:
    """Virtual stages that each stage has under the settings."""
    if stages == 1 or not _is_looped(settings):
        return 1
    if settings.get(LAYERS_EACH) is None or layers is None:
        return _STAGES_OF_LOOPED
    return max(_virtual(layers + _as_layers(settings), degree(settings, LAYERS_EACH)) // stages, 1)


def stage_settings(plan: Plan, current: Mapping[str, object], layers: int | None) -> dict[str, str]:
    """Settings of a plan's stages on top of those that are.

    Raises:
        PlanError: torchtitan cannot split the layers so, or the schedule does not take the microbatches.
    """
    stages, repeats = plan.degree("stage"), plan.pipeline_repeats
    if stages == 1:
        return {}
    if repeats == 1:
        if plan.microbatches is not None and plan.microbatches < stages:
            raise PlanError(f"{plan.microbatches} microbatches are fewer than the {stages} stages")
        schedule = {SCHEDULE: SCHEDULE_DEFAULT} if _is_looped(current) else {}
        return schedule | (_split(stages, current, layers) if LAYERS_EACH in current else {})
    _check_rounds(plan.microbatches, stages)
    schedule = {} if _is_looped(current) else {SCHEDULE: "Interleaved1F1B"}
    usual = repeats == _STAGES_OF_LOOPED and LAYERS_EACH not in current
    return schedule | ({} if usual else _split(stages * repeats, current, layers))


def _split(virtual: int, current: Mapping[str, object], layers: int | None) -> dict[str, str]:
    """Layers of each of so many virtual stages; the ends count as none where they leave no other way."""
    if layers is None:
        raise PlanError("virtual stages need the number of layers")
    everything = layers + _as_layers(current)
    if _virtual(everything, each := -(-everything // virtual)) == virtual:
        return {LAYERS_EACH: str(each)}
    if layers % virtual:
        raise PlanError(f"torchtitan does not split {layers} layers into {virtual} stages of as many")
    return {LAYERS_EACH: str(layers // virtual), **dict.fromkeys(AS_LAYERS, "0")}


def _virtual(layers: int, each: int) -> int:
    return -(-layers // each)


def _as_layers(settings: Mapping[str, object]) -> int:
    return sum(int(str(settings.get(key, _AS_LAYERS_DEFAULT))) for key in AS_LAYERS)


def _is_looped(settings: Mapping[str, object]) -> bool:
    return str(settings.get(SCHEDULE, SCHEDULE_DEFAULT)).casefold() in _LOOPED


def _check_rounds(microbatches: int | None, stages: int) -> None:
    """An interleaved schedule takes its microbatches in rounds of as many, each of a microbatch a stage or more."""
    rounds = max((microbatches or 1) // stages, 1)
    if (microbatches or 1) % rounds:
        raise PlanError(f"{microbatches} microbatches do not divide into {rounds} rounds over {stages} stages")
