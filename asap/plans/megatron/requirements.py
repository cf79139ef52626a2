"""What Megatron-LM checks before it trains: options that a plan needs, and plans that it refuses.

By ``validate_args`` of ``megatron/training/arguments.py``, ``TransformerConfig``, ``OptimizerConfig``, ``MoELayer`` and
the schedules of its core, NVIDIA/Megatron-LM of August 2026.
"""

import math
import re
from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.plan import Plan, Remat

PRECISION_AWARE = "use_precision_aware_optimizer"
_DISTRIBUTED, _SEQUENCE = "use_distributed_optimizer", "sequence_parallel"
_OF_LEVELS, OVERLAPPED_EXPERTS = "hierarchical_context_parallel_sizes", "overlap_moe_expert_parallel_comm"
_BIAS, _NO_BIAS = "add_bias_linear", "disable_bias_linear"
_DROPOUT = 0.1


def check(plan: Plan, current: Mapping[str, object]) -> None:
    """Check a plan beside the arguments as they are, Megatron-LM's or those of what runs on its core.

    Raises:
        PlanError: Megatron-LM refuses it.
    """
    refused = next((reason for reason, holds in _refusals(plan, current).items() if holds), None)
    if refused is not None:
        raise PlanError(f"Megatron-LM refuses it: {refused}")


def required(plan: Plan, current: Mapping[str, object]) -> dict[str, bool]:
    """Options that a plan needs beside those that say it.

    Args:
        plan: what to run.
        current: the arguments as they are.
    """
    mixture = plan.degree("expert") > 1 or is_set(current, "num_experts")
    needed = [PRECISION_AWARE, _DISTRIBUTED] if _is_precision_aware(plan) else []
    needed += [_SEQUENCE] if mixture and plan.degree("model") > 1 else []
    return {option: True for option in needed if not is_set(current, option)}


def of_start(plan: Plan, global_batch: int | None, sequence: int) -> dict[str, str | bool]:
    """What a plan is predicted with where nothing runs yet: a distributed optimizer, bf16, sequence parallelism.

    Args:
        plan: what to run.
        global_batch: sequences in a step.
        sequence: tokens in a sequence.
    """
    batch: dict[str, str | bool] = {"global_batch_size": str(global_batch)} if global_batch else {}
    split: dict[str, str | bool] = {_SEQUENCE: True} if plan.degree("model") > 1 else {}
    return {**batch, "seq_length": str(sequence), "bf16": True, _DISTRIBUTED: True, **split}


def _refusals(plan: Plan, current: Mapping[str, object]) -> dict[str, bool]:
    """Reasons, and whether they hold."""
    moved, context, staged = "optimizer" in plan.offload, plan.degree("seq"), plan.degree("stage") > 1
    fsdp2 = is_set(current, "use_torch_fsdp2")
    fp8_weights = is_set(current, "fp8_param_gather") and current.get("fp8_recipe", "delayed") != "delayed"
    graphs_of_layers = current.get("cuda_graph_impl") in ("local", "transformer_engine")
    overlapped = is_set(current, OVERLAPPED_EXPERTS) and plan.degree("expert") > 1
    sizes = re.findall(r"\d+", str(current[_OF_LEVELS])) if is_set(current, _OF_LEVELS) else [context]
    levels = math.prod(map(int, sizes))
    return {
        "PyTorch's FSDP2 goes with no pipeline": fsdp2 and staged,
        "PyTorch's FSDP2 goes with no expert parallelism": fsdp2 and plan.degree("expert") > 1,
        "PyTorch's FSDP2 does not go with a precision-aware optimizer": fsdp2 and _is_precision_aware(plan),
        "the optimizer is offloaded beside FP8 parameters with delayed scaling only": moved and fp8_weights,
        "CUDA graphs of layers do not go with full recomputation": graphs_of_layers and plan.remat is Remat.FULL,
        "CUDA graphs of layers compute no attention with dropout again": (
            graphs_of_layers and plan.remat is Remat.SELECTIVE and has_attention_dropout(current)
        ),
        f"{OVERLAPPED_EXPERTS} goes with an interleaved pipeline only": (
            overlapped and staged and plan.pipeline_repeats == 1
        ),
        f"{OVERLAPPED_EXPERTS} does not go with full recomputation": overlapped and plan.remat is Remat.FULL,
        f"{_OF_LEVELS} multiplies to {levels}, not to {context}": levels != context,
    }


def has_attention_dropout(current: Mapping[str, object]) -> bool:
    """Whether attention has dropout, as it has by default."""
    return str(current.get("attention_dropout", _DROPOUT)) not in ("0", "0.0")


def has_biased_experts(current: Mapping[str, object]) -> bool:
    """Whether experts have biases, as they do by default: tensor parallelism does not split these."""
    biased = is_set(current, _BIAS) if _BIAS in current else not is_set(current, _NO_BIAS)
    return biased and is_set(current, "num_experts")


def _is_precision_aware(plan: Plan) -> bool:
    """Whether a plan has an optimizer that Megatron-LM calls so: with moments on the host, or of less than fp32."""
    return bool("optimizer" in plan.offload or plan.first_moment or plan.second_moment)


def is_set(current: Mapping[str, object], option: str) -> bool:
    """Whether an option is on, or has a value."""
    return str(current.get(option)).casefold() not in ("none", "false", "", "0")
