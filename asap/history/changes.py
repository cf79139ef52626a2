"""What differs between two runs, in fixed phrases: the same words in every record, so that a search finds them."""

from collections.abc import Iterator

from asap.core.units import exact
from asap.experiments import Experiment
from asap.models import Workload
from asap.plans import AXES, Plan

AXIS_NAMES = {
    "replica": "plain data parallelism",
    "data": "data parallelism with sharded parameters (FSDP)",
    "seq": "sequence parallelism",
    "model": "tensor parallelism",
    "expert": "expert parallelism",
    "stage": "pipeline stages",
}
_WORKLOAD_NAMES = {
    "global_batch": "global batch",
    "sequence_length": "sequence length",
    "precision": "precision",
    "optimizer": "optimizer",
    "attention": "attention kernel",
    "framework": "framework",
    "zero_stage": "ZeRO stage",
    "context_parallel": "way of context parallelism",
    "sequence_parallel": "Megatron sequence parallelism",
}


def mesh_of(plan: Plan) -> str:
    """Only the axes: ``data=16 model=8``."""
    return str(Plan(ici=plan.ici, dcn=plan.dcn))


def axis_changes(before: Plan, after: Plan) -> Iterator[str]:
    """``tensor parallelism from 8 to 4``, axis by axis."""
    for axis in AXES:
        if before.degree(axis) != after.degree(axis):
            yield f"{AXIS_NAMES[axis]} from {before.degree(axis)} to {after.degree(axis)}"
        elif getattr(before.dcn, axis) != getattr(after.dcn, axis):
            over = f"{getattr(before.dcn, axis)} to {getattr(after.dcn, axis)}"
            yield f"{AXIS_NAMES[axis]} across slices from {over}"


def other_changes(before: Plan, after: Plan, old: Workload, new: Workload) -> Iterator[str]:
    """Settings besides the mesh that both sides state and that differ, unless the mesh implies the difference."""
    if before.remat and after.remat and before.remat != after.remat:
        yield f"rematerialisation from {before.remat.value} to {after.remat.value}"
    sizes = _microbatch_size(before, old), _microbatch_size(after, new)
    if all(sizes) and sizes[0] != sizes[1] and before.microbatches != after.microbatches:
        yield f"sequences a microbatch from {exact(sizes[0])} to {exact(sizes[1])}"
    if before.pipeline_repeats != after.pipeline_repeats and before.degree("stage") > 1 and after.degree("stage") > 1:
        yield f"virtual pipeline stages a device from {before.pipeline_repeats} to {after.pipeline_repeats}"
    if before.offload != after.offload:
        yield f"offload from {'+'.join(before.offload) or 'none'} to {'+'.join(after.offload) or 'none'}"
    for field, name in _WORKLOAD_NAMES.items():
        was, became = getattr(old, field), getattr(new, field)
        implied = field == "zero_stage" and before.degree("data") != after.degree("data")
        if was is not None and became is not None and was != became and not implied:
            yield f"{name} from {was} to {became}"


def experiment_changes(before: Experiment, after: Experiment) -> Iterator[str]:
    """What differs between two experiments besides plan and workload, where both state it."""
    if before.model and after.model and before.model != after.model:
        yield f"model from {before.model.name or 'one'} to {after.model.name or 'another'}"
    if before.code_version and after.code_version and before.code_version != after.code_version:
        yield f"code from {before.code_version} to {after.code_version}"
    for key in sorted(before.environment.keys() & after.environment.keys()):
        if before.environment[key] != after.environment[key]:
            yield f"{key} from {before.environment[key]} to {after.environment[key]}"


def _microbatch_size(plan: Plan, workload: Workload) -> float:
    """Sequences that one batch shard works on at a time; 0 if unknown."""
    return (workload.global_batch or 0) / (plan.batch_shards * plan.microbatches) if plan.microbatches else 0
