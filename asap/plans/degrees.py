"""Degrees that the stacks of PyTorch write; a plan with other degrees, and the workload under a plan."""

from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from asap.core.errors import PlanError
from asap.core.numbers import digits
from asap.core.text import plain
from asap.models import Workload
from asap.models.workload import FoldedAxis
from asap.plans.axes import Axis
from asap.plans.plan import OF_WORKLOAD, Plan

MOST = 10**9
FOLDED = "experts_over"
"""Among settings that hold no degrees: axes beside their own over which the experts of a run lie."""


DEVICES_UNKNOWN = "how many devices there are is not said: add --hardware, such as h100-64"
"""Why a configuration that counts its batch by device has no plan yet."""


class InexpressiblePlanError(PlanError):
    """A layout that runs, and that a plan cannot say."""


def degree(settings: Mapping[str, object], key: str, default: int = 1) -> int:
    """A positive whole number.

    Raises:
        PlanError: it is something else.
    """
    value = settings.get(key)
    value = default if value is None else value
    number = digits(str(value)) or 0
    if isinstance(value, bool) or not 1 <= number <= MOST:
        said = plain(repr(value), 40)
        raise PlanError(f"{key} must be a positive whole number, not {said}", hint=f"say it as a number: {key}=N")
    return number


def sequences_of_a_microbatch(plan: Plan, microbatches: int, global_batch: int) -> int:
    """Sequences that one batch shard of a plan works on at once.

    Raises:
        PlanError: the batch does not divide so.
    """
    each, rest = divmod(global_batch, plan.batch_shards * microbatches)
    if rest or not each:
        shards = f"{plan.batch_shards} data-parallel groups of {microbatches} microbatches"
        raise PlanError(f"{global_batch} sequences do not divide into {shards}")
    return each


def micro_batch(plan: Plan, global_batch: int | None) -> int | None:
    """Sequences that a batch shard works on at once; ``None`` where batch or microbatches are not known."""
    return global_batch // (plan.batch_shards * plan.microbatches) if global_batch and plan.microbatches else None


def groups_of(devices: int, degrees: Mapping[str, int]) -> int:
    """Devices over the product of some degrees: the groups that see different sequences.

    Raises:
        PlanError: it is not whole.
    """
    product = 1
    for value in degrees.values():
        product *= value
    groups, rest = divmod(devices, product)
    if rest or not groups:
        used = " x ".join(f"{key}={value}" for key, value in degrees.items() if value > 1) or "1"
        hint = "give other degrees as key=value, or with --hardware the devices of the run, such as h100-64"
        raise PlanError(f"{devices} devices are not a multiple of {used}", hint=hint)
    return groups


def folded_axes(expert: int, expert_tensor: int, tensor: int, context: int) -> tuple[FoldedAxis, ...]:
    """Axes over which experts lie as well, besides data parallelism.

    Those that tensor parallelism does not split lie over its devices, and all over those that share a sequence: expert
    ranks are counted through both before data parallelism (Megatron-Core, ``parallel_state.py``; torchtitan,
    ``parallel_dims.py``).
    """
    if expert == 1:
        return ()
    over_model = expert_tensor == 1 < tensor
    over_seq = not (expert * expert_tensor) % (tensor * context)
    return (*(("model",) if over_model else ()), *(("seq",) if over_seq else ()))


def expert_axis(expert: int, expert_tensor: int, tensor: int, context: int, groups: int) -> int:
    """Expert parallelism as a degree beside tensor, context and data parallelism, with the same share of experts a
    device; :func:`folded_axes` says over which of them experts lie as well.

    Raises:
        InexpressiblePlanError: experts lie over a part of an axis or over pipeline stages, which a plan cannot say.
    """
    found, rest = divmod(expert * expert_tensor, tensor)
    if expert == 1 and expert_tensor <= tensor and not (found and not rest):
        raise InexpressiblePlanError(
            f"expert tensor parallelism of {expert_tensor} beside {tensor} for attention: a plan has one degree"
        )
    if "seq" in folded_axes(expert, expert_tensor, tensor, context):
        found //= context
    stage = tensor * context * groups
    if stage % (expert * expert_tensor):
        ranks = f"{expert} x {expert_tensor} tensor" if expert_tensor > 1 else str(expert)
        raise InexpressiblePlanError(
            f"expert parallelism of {ranks} does not divide the {stage} devices of a pipeline stage; the launcher"
            " refuses it on so few"
        )
    if rest or not found or groups % found:
        shape = f"expert parallelism of {expert} (x {expert_tensor} tensor) and {groups} data-parallel groups"
        raise InexpressiblePlanError(f"{shape}: a plan cannot say where experts lie")
    return found


def keep_micro_batch_of(incumbent: Plan, plans: Iterable[Plan], global_batch: int) -> Iterator[Plan]:
    """Each plan with as many microbatches as its groups need for the incumbent's micro-batch; others are left out.

    Args:
        incumbent: the plan that runs, with a known number of microbatches.
        plans: for the same batch.
        global_batch: sequences in a step.
    """
    each = global_batch // (incumbent.batch_shards * (incumbent.microbatches or 1))
    for plan in plans:
        count, rest = divmod(global_batch, plan.batch_shards * each) if each else (0, 1)
        if count and not rest:
            yield plan.model_copy(update={"microbatches": count})


def keeping_micro_batch(plan: Plan, incumbent: Plan, global_batch: int) -> Plan:
    """A plan with the incumbent's micro-batch; unchanged where the batch does not divide into such."""
    return next(keep_micro_batch_of(incumbent, [plan], global_batch), plan)


def set_degree(plan: Plan, axis: str, degree: int) -> Plan:
    """The plan with another degree of an axis within a slice, on as many devices.

    Raises:
        PlanError: there is no such axis, or the devices cannot be divided so.
    """
    if axis not in get_args(Axis) or degree < 1:
        raise PlanError("is no axis with a degree", where=f"{axis}={degree}", hint=", ".join(get_args(Axis)))
    changed, rest = plan.with_ici(**{axis: degree}), data_axis(plan)
    return changed if axis == "data" else over(changed, plan.ici.devices, "data" if axis == rest else rest)


def data_axis(plan: Plan) -> Axis:
    """The axis that takes the devices which the others leave: plain data parallelism where a run has that alone."""
    return "replica" if plan.ici.data == 1 < plan.ici.replica else "data"


def over(plan: Plan, devices: int, axis: Axis = "data") -> Plan:
    """The plan over so many devices of a slice, with a data-parallel axis that takes what the others leave.

    Raises:
        PlanError: the devices cannot be divided by its other axes.
    """
    others = plan.ici.devices // plan.degree(axis)
    if devices % others:
        raise PlanError(f"{devices} devices cannot be divided by {others}", where=str(plan.ici))
    return plan.with_ici(**{axis: devices // others})


_FIELDS = {"first_moment": "first_moment_precision", "second_moment": "second_moment_precision"}
"""Fields of the workload that have another name than those of the plan."""


def field_of(name: str) -> str:
    """The field of the workload that a plan's setting of this name replaces."""
    return _FIELDS.get(name, name)


def workload_under(plan: Plan, workload: Workload) -> Workload:
    """The workload with the batch, the parts of the loss and the training state of a plan, where it says them."""
    said = {field_of(name): getattr(plan, name) for name in OF_WORKLOAD}
    changed = {field: value for field, value in said.items() if value is not None}
    return workload.model_copy(update=changed) if changed else workload
