"""A plan as DeepSpeed's configuration, both ways (DeepSpeed Configuration JSON, https://www.deepspeed.ai/docs/config-json).

ZeRO stage 3 shards parameters (axis ``data``), over all devices or over groups of ``mics_shard_size`` consecutive ones
(MiCS); stages 0 to 2 replicate them (``replica``). hpZ (``zero_hpz_partition_size``) is neither: it keeps a second copy
of the weights in each node, and shards the state as before. Tensor parallelism is ``tensor_parallel.autotp_size``,
context parallelism ``sequence_parallel_size`` (DeepSpeed-Ulysses), which the model's code has to support. Settings go
by dotted key.
"""

import json
from collections.abc import Mapping
from typing import Any

from asap.core.errors import PlanError
from asap.plans.degrees import degree, groups_of
from asap.plans.plan import Mesh, Offload, Plan, Remat
from asap.plans.remat import Policy

STAGE = "zero_optimization.stage"
MICRO_BATCH, ACCUMULATION = "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"
BATCH = "train_batch_size"
TENSOR = "tensor_parallel.autotp_size"
SEQUENCE = "sequence_parallel_size"
GROUP = "zero_optimization.mics_shard_size"
TRAINER_MICRO_BATCH, RECOMPUTE = "per_device_train_batch_size", "gradient_checkpointing"
KEEP = "disable_gradient_checkpointing"
"""Of Hugging Face's TrainingArguments: its Trainer refuses a configuration that says another batch than they do
(``HfTrainerDeepSpeedConfig.trainer_config_finalize``). LLaMA-Factory has ``disable_gradient_checkpointing`` instead
(``src/llamafactory/model/model_utils/checkpointing.py``)."""
_OFFLOAD: dict[Offload, str] = {
    "optimizer": "zero_optimization.offload_optimizer.device",
    "parameters": "zero_optimization.offload_param.device",
}
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
    if zero_stage(settings) == 3:
        shards = groups
        if str(settings.get(GROUP, -1)) != "-1":
            shards, rest = divmod(degree(settings, GROUP), sequence)
            if rest or groups % shards:
                raise PlanError(f"{groups} x {sequence} processes do not divide into groups of {GROUP}")
    offload: tuple[Offload, ...] = tuple(
        what for what, key in _OFFLOAD.items() if str(settings.get(key) or "none") not in _ON_DEVICE
    )
    return Plan(
        ici=Mesh(replica=groups // shards, data=shards, seq=sequence, model=tensor),
        microbatches=accumulation_of(settings, groups),
        remat=remat,
        offload=offload,
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
    if not _said(settings, MICRO_BATCH):
        return None
    return degree(settings, MICRO_BATCH) * _said_accumulation(settings) * groups


def accumulation_of(settings: Mapping[str, object], groups: int) -> int | None:
    """Gradient accumulation steps; where only batch and micro-batch are said, what they leave."""
    if _said(settings, ACCUMULATION) or not (_said(settings, BATCH) and _said(settings, MICRO_BATCH)):
        return _said_accumulation(settings) if _said(settings, ACCUMULATION) or _said(settings, MICRO_BATCH) else None
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
    if wanted.get(GROUP, -1) != -1 and GROUP not in current and _initialised_by_hugging_face(current):
        raise PlanError(
            f"Hugging Face's libraries load weights under deepspeed.zero.Init, which {GROUP} refuses",
            hint="data parallelism with one axis: data alone (stage 3) or replica alone",
        )
    if plan.microbatches is not None and global_batch is not None:
        each, rest = divmod(global_batch, plan.batch_shards * plan.microbatches)
        if rest or not each:
            raise PlanError(f"{global_batch} sequences do not divide into {plan.batch_shards} x {plan.microbatches}")
        wanted |= {ACCUMULATION: plan.microbatches}
        wanted |= (
            {TRAINER_MICRO_BATCH: each} if trained_by_trainer(current) else {MICRO_BATCH: each, BATCH: global_batch}
        )
    if plan.remat is not None and KEEP in current:
        wanted[KEEP] = not _recomputes(plan.remat)
    elif plan.remat is not None and RECOMPUTE in current:
        wanted[RECOMPUTE] = _recomputes(plan.remat)
    for what, key in _OFFLOAD.items():
        wanted[key] = "cpu" if what in plan.offload else "none"
    defaults = {
        STAGE: 0,
        TENSOR: 1,
        SEQUENCE: 1,
        GROUP: -1,
        ACCUMULATION: 1,
        **dict.fromkeys(_OFFLOAD.values(), "none"),
    }
    return {key: value for key, value in wanted.items() if not _same(current, key, value, defaults)}


def shards_parameters(data: Any, replica: Any, tensor: Any, present: int) -> Any:
    """Whether DeepSpeed runs a mesh under stage 3: it has a ``data`` axis, or nothing to replicate, and runs so now.

    Args:
        data, replica, tensor: degrees of one mesh, or arrays of the degrees of many.
        present: the stage now.
    """
    return (data > 1) | ((replica * tensor == 1) & (present == 3))


def trained_by_trainer(settings: Mapping[str, object]) -> bool:
    """Whether Hugging Face's Trainer runs it, whose arguments are on record beside the configuration."""
    return TRAINER_MICRO_BATCH in settings


def json_text(settings: Mapping[str, object]) -> str:
    """The settings as JSON to lay over the configuration, on one line."""
    tree: dict[str, object] = {}
    for key, value in settings.items():
        node = tree
        *path, name = key.split(".")
        for part in path:
            inner = node.setdefault(part, {})
            assert isinstance(inner, dict)
            node = inner
        node[name] = value
    return json.dumps(tree)


def _initialised_by_hugging_face(settings: Mapping[str, object]) -> bool:
    """By transformers or accelerate, which fill in what is ``auto``; MiCS asserts that its own ``MiCS_Init`` did
    (``deepspeed/runtime/zero/mics.py``, ``MiCS_Optimizer``; huggingface/accelerate issue 3442)."""
    return trained_by_trainer(settings) or "auto" in settings.values()


def _recomputes(remat: Policy) -> bool:
    if remat not in (Remat.NONE, Remat.FULL):
        raise PlanError(f"Hugging Face's Trainer has no recomputation like remat={remat.value}", hint="full or none")
    return remat is Remat.FULL


def _same(current: Mapping[str, object], key: str, value: object, defaults: Mapping[str, object]) -> bool:
    said = current.get(key)
    if said in (None, "auto") and key == BATCH:
        return True
    if key in _OFFLOAD.values() and value == "cpu":
        return str(said or "none") not in _ON_DEVICE
    return str(defaults.get(key) if said is None else said).casefold() == str(value).casefold()


def _said(settings: Mapping[str, object], key: str) -> bool:
    return settings.get(key) not in (None, "auto")


def _said_accumulation(settings: Mapping[str, object]) -> int:
    return degree(settings, ACCUMULATION) if _said(settings, ACCUMULATION) else 1
