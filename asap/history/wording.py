"""What happened, in plain words made from the facts: the same words in every record, so that they can be found."""

from collections.abc import Iterator

from asap.core.provenance import Quantity
from asap.core.text import plain
from asap.core.units import format_rate, format_seconds, significant
from asap.experiments import Experiment
from asap.history.record import Outcome
from asap.models import Workload
from asap.plans import AXES, Plan

AXIS_WORDS = {
    "replica": "plain data parallelism",
    "data": "data parallelism with sharded parameters (FSDP)",
    "seq": "sequence parallelism",
    "model": "tensor parallelism",
    "expert": "expert parallelism",
    "stage": "pipeline stages",
}
_WORKLOAD_WORDS = {
    "global_batch": "global batch",
    "sequence_length": "sequence length",
    "precision": "precision",
    "optimizer": "optimizer",
    "attention": "attention kernel",
    "framework": "framework",
    "zero_stage": "ZeRO stage",
    "sequence_parallel": "Megatron sequence parallelism",
}


def title_of(what: str, before: Plan, after: Plan, others: tuple[str, ...], outcome: Outcome, fitted: bool) -> str:
    """One line: what changed, on what, and how it went; ``fitted`` says whether it ran before."""
    ends = {Outcome.IMPROVED: "faster" if fitted else "fits", Outcome.SLOWER: "slower"}
    meshes = mesh_of(before), mesh_of(after)
    change = f"{meshes[0]} → {meshes[1]}" if meshes[0] != meshes[1] else f"{meshes[0]}, {'; '.join(others)}"
    return plain(f"{what}: {change}: {ends.get(outcome, 'out of memory')}", 200)


def summary_of(
    what: str,
    before: Plan,
    after: Plan,
    outcome: Outcome,
    measured: tuple[Quantity | None, Quantity | None],
    speedup: float | None,
    others: tuple[str, ...],
) -> str:
    """A few sentences: what was moved, what it did, and what changed besides."""
    moves = "; ".join(axis_changes(before, after)) or "the mesh stayed as it was"
    sentences = [f"{what}: {moves}.", _effect(outcome, measured, speedup)]
    if others:
        sentences.append(f"Changed besides the mesh: {'; '.join(others)}.")
    return " ".join(sentences)


def axis_changes(before: Plan, after: Plan) -> Iterator[str]:
    """``tensor parallelism from 8 to 4``, axis by axis."""
    for axis in AXES:
        if before.degree(axis) != after.degree(axis):
            yield f"{AXIS_WORDS[axis]} from {before.degree(axis)} to {after.degree(axis)}"
        elif getattr(before.dcn, axis) != getattr(after.dcn, axis):
            over = f"{getattr(before.dcn, axis)} to {getattr(after.dcn, axis)}"
            yield f"{AXIS_WORDS[axis]} across slices from {over}"


def other_changes(before: Plan, after: Plan, old: Workload, new: Workload) -> Iterator[str]:
    """What plans and workloads say besides the mesh, where both say it and differ, unless the mesh implies it."""
    if before.remat and after.remat and before.remat != after.remat:
        yield f"rematerialisation from {before.remat.value} to {after.remat.value}"
    sizes = _microbatch_size(before, old), _microbatch_size(after, new)
    if all(sizes) and sizes[0] != sizes[1] and before.microbatches != after.microbatches:
        yield f"sequences a microbatch from {sizes[0]:g} to {sizes[1]:g}"
    if before.pipeline_repeats != after.pipeline_repeats and before.degree("stage") > 1 and after.degree("stage") > 1:
        yield f"virtual pipeline stages a device from {before.pipeline_repeats} to {after.pipeline_repeats}"
    if before.offload != after.offload:
        yield f"offload from {'+'.join(before.offload) or 'none'} to {'+'.join(after.offload) or 'none'}"
    for field, words in _WORKLOAD_WORDS.items():
        was, became = getattr(old, field), getattr(new, field)
        implied = field == "zero_stage" and before.degree("data") != after.degree("data")
        if was is not None and became is not None and was != became and not implied:
            yield f"{words} from {was} to {became}"


def experiment_changes(before: Experiment, after: Experiment) -> Iterator[str]:
    """What differs between two experiments besides plan and workload, where both say it."""
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


def mesh_of(plan: Plan) -> str:
    """Only the axes: ``data=16 model=8``."""
    return str(Plan(ici=plan.ici, dcn=plan.dcn))


def _effect(outcome: Outcome, measured: tuple[Quantity | None, Quantity | None], speedup: float | None) -> str:
    before, after = measured
    if outcome is Outcome.OUT_OF_MEMORY:
        return "It ran out of memory" + (f"; before, it ran at {_shown(before)}." if before else ".")
    if before is None:
        return "Before it ran out of memory; now it fits" + (f" and runs at {_shown(after)}." if after else ".")
    times = f" ({significant(speedup)}× as fast)" if speedup else ""
    return (
        f"It went from {_shown(before)} to {_shown(after)}{times}." if after else f"It became {outcome.value}{times}."
    )


def _shown(quantity: Quantity | None) -> str:
    if quantity is None:
        return "an unknown speed"
    if quantity.unit == "s":
        return f"{format_seconds(quantity.value)} a step"
    return format_rate(quantity.value, quantity.unit)
