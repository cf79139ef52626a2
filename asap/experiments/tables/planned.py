"""The plan of settings some of which only a run can tell."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap.experiments.deepspeed.named_configuration import read_named_configuration, with_note_on_shipped
from asap.experiments.deepspeed.training_arguments import read_with_arguments
from asap.experiments.experiment import Experiment
from asap.plans.degrees import InexpressiblePlanError
from asap.plans.plan import Plan, Remat
from asap.stacks.deepspeed import settings as zero
from asap.stacks.reading import axis_degree, from_settings, meaning, moves
from asap.stacks.spec import Spec, Word
from asap.stacks.stack_settings import StackSettings
from asap.stacks.trainer.arguments import RECOMPUTE, TRAINER_ACCUMULATION, TRAINER_MICRO_BATCH


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


_OFFLOADED = "activations"


def read_with_deepspeed(
    spec: Spec, settings: StackSettings, named: Any, path: Path, experiment: Experiment
) -> Experiment:
    """``experiment`` with the DeepSpeed configuration that settings name; raises ConfigError where it is not there."""
    said = spec.with_defaults(settings)
    sizes = {zero.TENSOR: axis_degree(spec, said, "model"), zero.SEQUENCE: axis_degree(spec, said, "seq")}
    micro = settings.count(spec.batch.micro.key(said), 1)
    accumulation = spec.batch.accumulation.key(said) if spec.batch.accumulation else ""
    recomputes = meaning(spec.recompute[0], said) == Remat.FULL.value
    arguments = {
        TRAINER_MICRO_BATCH: micro, TRAINER_ACCUMULATION: settings.count(accumulation, 1), RECOMPUTE: recomputes,
    }  # fmt: skip
    configuration = {
        **read_named_configuration(named, path), **{key: size for key, size in sizes.items() if size != 1},
    }  # fmt: skip
    read = read_with_arguments(configuration, StackSettings(arguments, str(path)), path, (), experiment, of_yaml=True)
    read = with_note_on_shipped(read, named, path)
    kept = {key: value for key, value in read.hyperparameters.items() if key != TRAINER_MICRO_BATCH}
    recorded = kept | settings.harmless() | {spec.batch.micro.key(said): micro}
    moved = any(_OFFLOADED in one.what and moves(one, said) for one in spec.offload)
    plan = read.plan
    if plan is not None and plan.remat is Remat.FULL and moved:
        plan = plan.model_copy(update={"offload": (*plan.offload, _OFFLOADED)})
    return read.model_copy(update={"hyperparameters": recorded, "plan": plan})
