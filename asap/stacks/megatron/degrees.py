"""A plan in Megatron-LM's arguments, both ways (``megatron/training/arguments.py``, ModelParallelConfig of its core).

Data parallelism replicates parameters (``replica``) unless Megatron-FSDP or PyTorch's FSDP2 shards them (``data``).
"""

import math
from collections.abc import Mapping
from typing import Literal

from asap.core.errors import PlanError
from asap.models.workload import FoldedAxis
from asap.plans.degrees import FOLDED, degree, expert_axis, folded_axes, sequences_of_a_microbatch
from asap.plans.plan import Plan
from asap.stacks.megatron.releases import (
    Changes,
    in_words_of_deepspeed,
    in_words_of_release,
    is_megatron_deepspeed,
    is_of_swift,
    is_set,
)
from asap.stacks.megatron.stages import (
    COUNTED,
    FIRST_AND_LAST,
    LAYERS_EACH,
    PIPELINE,
    VIRTUAL,
    recomputing,
    staged,
    still_counted,
)
from asap.stacks.reading import field_of
from asap.stacks.registry import spec
from asap.stacks.rules import dropped, facts_of

TENSOR, CONTEXT = "tensor_model_parallel_size", "context_parallel_size"
EXPERT, EXPERT_TENSOR = "expert_model_parallel_size", "expert_tensor_parallel_size"
MICRO_BATCH, GLOBAL_BATCH = "micro_batch_size", "global_batch_size"
FSDP, STRATEGY = "use_megatron_fsdp", "data_parallel_sharding_strategy"
INSTANCES, OFFLOAD = "num_distributed_optimizer_instances", "optimizer_cpu_offload"
_MOMENTS = {"first_moment": "exp_avg_dtype", "second_moment": "exp_avg_sq_dtype"}
_FULL, _OF_TORCH, _SEQUENCE = "optim_grads_params", "use_torch_fsdp2", "sequence_parallel"
PRECISION_AWARE = "use_precision_aware_optimizer"
CHECKPOINTS, _OF_FSDP, _USUAL = "ckpt_format", "fsdp_dtensor", "torch_dist"
_BIAS, _NO_BIAS = "add_bias_linear", "disable_bias_linear"

Settings = Mapping[str, object]


def counted(arguments: Settings, devices: int | None) -> dict[str, object]:
    """The arguments that count for a plan, some of which may be written as off; experts split as attention is, and a
    microbatch for each data-parallel group, where nothing else is said."""
    said = {key: value for key, value in arguments.items() if str(value).casefold() != "false"}
    said.setdefault(EXPERT_TENSOR, degree(said, TENSOR))
    if degree(said, EXPERT) == 1:  # whose tensor parallelism has to be that of attention as well
        expert_axis(*_expert_degrees(said), groups=1)
    if devices is not None and said.get(GLOBAL_BATCH) is None and said.get(MICRO_BATCH) is not None:
        used = math.prod(degree(said, key) for key in (TENSOR, PIPELINE, CONTEXT))
        said[GLOBAL_BATCH] = degree(said, MICRO_BATCH) * (devices // used) or None
    return said


def layout(arguments: Settings) -> Literal["data", "replica"]:
    """What data parallelism does with parameters."""
    return "data" if field_of(spec("megatron"), "zero_stage", arguments) == 3 else "replica"


def experts_over(arguments: Settings) -> tuple[FoldedAxis, ...]:
    """Axes beside its own over which experts lie whole: of a run without expert and context parallelism, those over
    which they would. Raises PlanError where a degree is no whole number."""
    if isinstance(said := arguments.get(FOLDED), tuple):
        return said
    expert, split, tensor, context = _expert_degrees(arguments)
    whole: tuple[FoldedAxis, ...] = ("model",) if tensor == 1 and has_biased_experts(arguments) else ()
    if expert == 1:
        return (*whole, *(("seq",) if context == 1 and arguments.get("num_experts") else ()))
    return tuple(dict.fromkeys((*whole, *folded_axes(expert, split, tensor, context))))


def _expert_degrees(arguments: Settings) -> tuple[int, int, int, int]:
    """Of experts, of tensor parallelism inside of them and beside them, and of context parallelism."""
    tensor = degree(arguments, TENSOR)
    return degree(arguments, EXPERT), degree(arguments, EXPERT_TENSOR, tensor), tensor, degree(arguments, CONTEXT)


def to_arguments(
    plan: Plan, current: Settings, *, global_batch: int | None = None, layers: int | None = None
) -> Changes:
    """Arguments that have to change for Megatron-LM to run a plan.

    Args:
        plan: what to run.
        current: the arguments as they are.
        global_batch: sequences in a step; gives ``micro_batch_size`` where the plan sets microbatches.
        layers: decoder layers.

    Raises:
        PlanError: Megatron-LM cannot express the plan.
    """
    of_deepspeed = is_megatron_deepspeed(current)
    moments = {key: precision for name, key in _MOMENTS.items() if (precision := getattr(plan, name)) is not None}
    aware = moments or ("optimizer" in plan.offload and not of_deepspeed)
    wanted: Changes = {
        TENSOR: str(plan.degree("model")),
        PIPELINE: str(plan.degree("stage")),
        CONTEXT: str(plan.degree("seq")),
        **_experts(plan, current),
        **_sharding(plan, current),
        **_batch(plan, global_batch, current),
        **staged(plan, current, layers),
        **recomputing(plan, current, layers),
        OFFLOAD: "optimizer" in plan.offload,
        **({PRECISION_AWARE: True, **moments} if aware else {}),
        **({"optimizer": plan.optimizer.removesuffix("w")} if plan.optimizer else {}),
    }
    if {"parameters", "activations"} & set(plan.offload) and not of_deepspeed:
        raise PlanError("Megatron-LM offloads the optimizer only, as far as a plan can say it")
    if plan.degree("model") > 1 and (plan.degree("expert") > 1 or plan.sequence_parallel):
        wanted[_SEQUENCE] = True  # Megatron-Core refuses tensor and expert parallelism without it
    elif plan.sequence_parallel is False:
        wanted[_SEQUENCE] = False
    changed = {key: value for key, value in wanted.items() if not _same(current, value, key)}
    changed |= invalidated(plan, changed, wanted, current, layers)
    if of_deepspeed:
        changed = in_words_of_deepspeed(plan, current, changed)
    elif not is_of_swift(current):
        changed |= checkpoints(wanted, current)
    return in_words_of_release(changed, current)


def _experts(plan: Plan, current: Settings) -> Changes:
    """Expert degrees; experts that were whole beside tensor or context parallelism stay so."""
    expert, tensor = plan.degree("expert"), plan.degree("model")
    over = experts_over(current)
    alone = expert > 1 and FOLDED not in current and degree(current, EXPERT) == 1 == degree(current, CONTEXT)
    if "seq" in over or alone:
        expert *= plan.degree("seq")
    if "model" in over and (FOLDED in current or (tensor > 1 and has_biased_experts(current))):
        return {EXPERT: str(expert * tensor), EXPERT_TENSOR: "1"}
    if is_of_swift(current) and EXPERT_TENSOR not in current and expert > 1:  # whose default is 1
        return {EXPERT: str(expert), EXPERT_TENSOR: str(tensor)}
    if EXPERT_TENSOR not in current or ("num_layers" in current and not current.get("num_experts")):
        return {EXPERT: str(expert)}
    kept = degree(current, EXPERT_TENSOR)
    if str(current[EXPERT_TENSOR]) != str(current.get(TENSOR, 1)) and (expert * tensor) % kept == 0:
        return {EXPERT: str(expert * tensor // kept)}
    return {EXPERT: str(expert), EXPERT_TENSOR: str(tensor)}


def _sharding(plan: Plan, current: Settings) -> Changes:
    if plan.degree("data") == 1:
        return {FSDP: False, _OF_TORCH: False} if layout(current) == "data" else {}
    groups: Changes = {INSTANCES: str(plan.degree("replica"))}
    if is_set(current, _OF_TORCH):
        return groups
    return {FSDP: True, STRATEGY: _FULL, "use_distributed_optimizer": True} | groups


def _batch(plan: Plan, global_batch: int | None, current: Settings) -> Changes:
    """Micro-batch, and the batch where the configuration has another or, saying none, takes one microbatch."""
    if plan.microbatches is None or global_batch is None:
        return {}
    each = sequences_of_a_microbatch(plan, plan.microbatches, global_batch)
    says_it = plan.global_batch or GLOBAL_BATCH in current or (MICRO_BATCH in current and plan.microbatches > 1)
    return {MICRO_BATCH: str(each), **({GLOBAL_BATCH: str(global_batch)} if says_it else {})}


def _same(current: Settings, wanted: str | bool, key: str) -> bool:
    value = current.get(key)
    if isinstance(wanted, bool):
        present = value is not None and str(value).casefold() not in ("false", "none", "")
        return present == wanted
    one = key == INSTANCES or (key.endswith("_size") and key not in (MICRO_BATCH, EXPERT_TENSOR))
    return str("1" if value is None and one else value) == wanted


def has_biased_experts(current: Settings) -> bool:
    """Whether experts have biases, as they do by default: tensor parallelism does not split these."""
    biased = is_set(current, _BIAS) if _BIAS in current else not is_set(current, _NO_BIAS)
    return biased and is_set(current, "num_experts")


def invalidated(plan: Plan, changed: Changes, wanted: Changes, current: Settings, layers: int | None = None) -> Changes:
    """Arguments on record that Megatron-LM refuses under a plan, to be left out.

    Args:
        plan: what to run.
        changed: arguments that change for it.
        wanted: all arguments that say it.
        current: those on record.
        layers: decoder layers.
    """
    moved = any(key in changed for key in (PIPELINE, VIRTUAL, LAYERS_EACH))
    found = [key for key in FIRST_AND_LAST if key not in wanted] if moved else []
    found += [] if not moved or still_counted(plan, current, layers) else COUNTED
    after = {**current, **wanted, _SEQUENCE: wanted.get(_SEQUENCE)}
    found += dropped(spec("megatron").rules, facts_of(plan), after)
    return {key: False for key in found if is_set(current, key)}


def checkpoints(wanted: Changes, current: Settings) -> Changes:
    """The format of checkpoints, of which Megatron-FSDP takes one alone, and nothing else takes that one."""
    shards = wanted.get(FSDP, is_set(current, FSDP))
    if shards and current.get(CHECKPOINTS) != _OF_FSDP:
        return {CHECKPOINTS: _OF_FSDP}
    return {CHECKPOINTS: _USUAL} if not shards and current.get(CHECKPOINTS) == _OF_FSDP else {}
