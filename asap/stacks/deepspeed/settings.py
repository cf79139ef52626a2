"""A plan as DeepSpeed's configuration, both ways (DeepSpeed Configuration JSON, https://www.deepspeed.ai/docs/config-json).

ZeRO stage 3 shards parameters (axis ``data``), over all devices or over groups of ``mics_shard_size`` consecutive ones
(MiCS); stages 0 to 2 replicate them (``replica``). hpZ (``zero_hpz_partition_size``) is neither: it keeps a second copy
of the weights in each node, and shards the state as before. Tensor parallelism is ``tensor_parallel.autotp_size``,
context parallelism ``sequence_parallel_size`` (DeepSpeed-Ulysses), which the model's code has to support. Settings go
by dotted key.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from asap.core.errors import PlanError
from asap.plans.degrees import degree, groups_of, sequences_of_a_microbatch
from asap.plans.plan import Mesh, Offload, Plan, Remat
from asap.stacks.trainer.arguments import (
    AUTO,
    argument_key,
    batch_arguments,
    in_words_of_axolotl,
    is_run_by_trainer,
    recomputation,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Degree = float | NDArray[np.float64]


STAGE = "zero_optimization.stage"
MICRO_BATCH, ACCUMULATION = "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"
BATCH = "train_batch_size"
TENSOR = "tensor_parallel.autotp_size"
SEQUENCE = "sequence_parallel_size"
GROUP = "zero_optimization.mics_shard_size"
SECONDARY = "zero_optimization.zero_hpz_partition_size"
OFFLOAD: dict[Offload, str] = {
    "optimizer": "zero_optimization.offload_optimizer.device",
    "parameters": "zero_optimization.offload_param.device",
}
"""Settings that offload; ``none`` and nothing do not."""
_OFFLOADED_FROM: dict[Offload, int] = {"optimizer": 0, "parameters": 3}
"""The least stage of ZeRO at which they count: ``offload_param`` is ignored below 3 (DeepSpeed Configuration JSON)."""
_ON_DEVICE = ("none", "")


def from_settings(settings: Mapping[str, object], devices: int, remat: Remat | None = None) -> Plan:
    """The plan that DeepSpeed makes of its configuration on so many devices.

    Args:
        settings: by dotted key; what is absent has DeepSpeed's default.
        devices: processes of the job.
        remat: what is recomputed, which the model's code decides.

    Raises:
        PlanError: the degrees do not divide the devices.
    """
    tensor, sequence = degree(settings, TENSOR), degree(settings, SEQUENCE)
    groups = groups_of(devices, {TENSOR: tensor, SEQUENCE: sequence})
    shards = 1
    stage = zero_stage(settings)
    if stage == 3:
        shards = groups
        if str(settings.get(GROUP, -1)) != "-1":
            shards, rest = divmod(degree(settings, GROUP), sequence)
            if rest or groups % shards:
                raise PlanError(f"{groups} x {sequence} processes do not divide into groups of {GROUP}")
    return Plan(
        ici=Mesh(replica=groups // shards, data=shards, seq=sequence, model=tensor),
        microbatches=accumulation_of(settings, groups),
        remat=remat,
        offload=offloaded(settings, stage),
    )


def offloaded(settings: Mapping[str, object], stage: int) -> tuple[Offload, ...]:
    """What the configuration offloads at a stage of ZeRO."""
    return tuple(
        what
        for what, key in OFFLOAD.items()
        if stage >= _OFFLOADED_FROM[what] and str(settings.get(key) or "none") not in _ON_DEVICE
    )


def zero_stage(settings: Mapping[str, object]) -> int:
    """The stage of ZeRO, 0 by default.

    Raises:
        PlanError: it is not 0 to 3.
    """
    text = str(settings.get(STAGE, 0))
    if text not in ("0", "1", "2", "3"):
        raise PlanError(f"{STAGE} must be 0 to 3, not {text[:20]!r}")
    return int(text)


def global_batch_of(settings: Mapping[str, object], groups: int) -> int | None:
    """Sequences in a step: ``train_batch_size``, else micro-batch x accumulation x processes; ``None``: not said."""
    if _said(settings, BATCH):
        return degree(settings, BATCH)
    accumulation = accumulation_of(settings, groups)
    if accumulation is None or not _said(settings, MICRO_BATCH):
        return None
    return degree(settings, MICRO_BATCH) * accumulation * groups


def accumulation_of(settings: Mapping[str, object], groups: int) -> int | None:
    """Gradient accumulation steps: as said, else what batch and micro-batch leave; ``None``: the launcher decides."""
    if _said(settings, ACCUMULATION):
        return degree(settings, ACCUMULATION)
    if not _said(settings, MICRO_BATCH):
        return None
    if not _said(settings, BATCH):
        return None if settings.get(ACCUMULATION) == AUTO else 1
    count, rest = divmod(degree(settings, BATCH), degree(settings, MICRO_BATCH) * groups)
    if rest or not count:
        raise PlanError(f"{BATCH} is not a multiple of {MICRO_BATCH} x {groups} data-parallel processes")
    return count


def to_settings(plan: Plan, current: Mapping[str, object], *, global_batch: int | None = None) -> dict[str, object]:
    """Settings that have to change for DeepSpeed to run a plan, by dotted key.

    Raises:
        PlanError: DeepSpeed's configuration cannot express the plan.
    """
    of_model = ("expert", "stage") if SEQUENCE in current else ("seq", "expert", "stage")
    inexpressible = [axis for axis in of_model if plan.degree(axis) > 1]
    if inexpressible:
        raise PlanError(f"DeepSpeed's configuration has no {', '.join(inexpressible)} degree: that is the model's code")
    data, replica, tensor, sequence = (plan.degree(axis) for axis in ("data", "replica", "model", "seq"))
    if data > 1 and tensor > 1:
        raise PlanError("DeepSpeed has no ZeRO stage 3 with tensor_parallel.autotp_size")
    present = zero_stage(current)
    stage = 3 if shards_parameters(data, replica, tensor, present) else min(present, 2)
    wanted: dict[str, object] = {STAGE: stage, TENSOR: tensor, SEQUENCE: sequence}
    if stage == 3:
        wanted[GROUP] = data * sequence if replica > 1 else -1
    if wanted.get(GROUP, -1) != -1 and GROUP not in current and is_run_by_trainer(current):
        raise PlanError(
            f"Hugging Face's libraries load weights under deepspeed.zero.Init, which {GROUP} refuses",
            hint="data parallelism with one axis: data alone (stage 3) or replica alone",
        )
    wanted |= _batch(plan, current, global_batch) | recomputation(plan.remat, current)
    for what, key in OFFLOAD.items():
        if stage >= _OFFLOADED_FROM[what]:
            wanted[key] = "cpu" if what in plan.offload else "none"
        elif what in plan.offload:
            raise PlanError(f"DeepSpeed offloads {what} under ZeRO stage {_OFFLOADED_FROM[what]} only, not {stage}")
    defaults = {
        STAGE: 0,
        TENSOR: 1,
        SEQUENCE: 1,
        GROUP: -1,
        ACCUMULATION: 1,
        argument_key(current, ACCUMULATION): 1,
        **dict.fromkeys(OFFLOAD.values(), "none"),
    }
    changed = {key: value for key, value in wanted.items() if not _same(current, key, value, defaults)}
    return {in_words_of_axolotl(current, key): value for key, value in changed.items()}


def shards_parameters(data: "Degree", replica: "Degree", tensor: "Degree", present: int) -> "bool | NDArray[np.bool_]":
    """Whether DeepSpeed runs a mesh under stage 3: it has a ``data`` axis, or nothing to replicate, and runs so now.

    Args:
        data, replica, tensor: degrees of one mesh, or arrays of the degrees of many.
        present: the stage now.
    """
    return (data > 1) | ((replica * tensor == 1) & (present == 3))


def _batch(plan: Plan, current: Mapping[str, object], global_batch: int | None) -> dict[str, object]:
    """The batch where it is decided: what the configuration leaves ``auto`` is the launcher's argument."""
    if plan.microbatches is None or global_batch is None:
        return {}
    each = sequences_of_a_microbatch(plan, plan.microbatches, global_batch)
    own: dict[str, object] = {ACCUMULATION: plan.microbatches, MICRO_BATCH: each, BATCH: global_batch}
    if not is_run_by_trainer(current):
        return own
    said = {key: value for key, value in own.items() if _said(current, key)}
    return said | batch_arguments(current, each, plan.microbatches)


def _same(current: Mapping[str, object], key: str, value: object, defaults: Mapping[str, object]) -> bool:
    said = current.get(key)
    if said == AUTO or (said is None and key == BATCH):
        return True
    if key in OFFLOAD.values() and value == "cpu":
        return str(said or "none") not in _ON_DEVICE
    return str(defaults.get(key) if said is None else said).casefold() == str(value).casefold()


def _said(settings: Mapping[str, object], key: str) -> bool:
    return settings.get(key) not in (None, AUTO)
