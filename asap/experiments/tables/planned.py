"""The plan of settings some of which only a run can tell."""

from collections.abc import Mapping
from typing import Any

from asap.plans.degrees import InexpressiblePlanError
from asap.plans.plan import Plan
from asap.stacks.reading import from_settings
from asap.stacks.spec import Spec, Word


def planned(
    spec: Spec, settings: Mapping[str, Any], devices: int | None, unsettled: frozenset[str], slices: int = 1
) -> tuple[Plan | None, tuple[str, ...]]:
    """The plan, ``None`` where it hangs on what is not settled, and what is to be said of it.

    Args:
        spec: the table of the stack.
        settings: under its names.
        devices: of the job, where they are known.
        unsettled: settings whose value is not known.
        slices: of TPUs.

    Raises:
        PlanError: the degrees do not divide the devices, or a word has no meaning.
    """
    axes, batch = spec.axes, spec.batch
    moved = {key for one in spec.offload for key in keys_of(*one.keys)}
    words = (axes.seq, axes.model, axes.expert, axes.stage, axes.replica, axes.data, axes.slices, axes.strategy)
    degrees = ({*keys_of(*words)} | moved) & unsettled
    if devices is not None and degrees:
        return None, (f"the plan is unknown: it hangs on {', '.join(sorted(degrees))}; add as key=value",)
    known = {key: value for key, value in settings.items() if key not in unsettled}
    open_batch = {*keys_of(batch.whole, batch.micro, batch.accumulation)} & unsettled
    try:
        plan = from_settings(spec, {**known, **dict.fromkeys(open_batch, None)}, devices, slices)
    except InexpressiblePlanError as error:
        asks = devices is None and "how many devices" in error.message
        return None, (error.message if asks else f"the plan is unknown: {error.message}",)
    asked = {*keys_of(batch.whole or batch.micro)}
    recompute = {*keys_of(*spec.recompute)} & unsettled
    counts = open_batch - asked if batch.accumulation else open_batch
    update: dict[str, Any] = ({"microbatches": None} if counts else {}) | ({"remat": None} if recompute else {})
    left = sorted((open_batch | recompute) - asked)
    notes = (f"set by a variable whose value is not said: {', '.join(left)}",) if left else ()
    return plan.model_copy(update=update), notes


def keys_of(*words: Word | None) -> tuple[str, ...]:
    """All names of some words."""
    return tuple(key for word in words if word for key in word.keys)
