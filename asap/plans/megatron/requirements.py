"""What Megatron-LM checks before it trains: options that come or go with a plan, and plans that it refuses.

By ``validate_args`` of ``megatron/training/arguments.py``, ``TransformerConfig``, ``OptimizerConfig``, ``MoELayer`` and
the schedules of its core, NVIDIA/Megatron-LM of August 2026.
"""

import math
import re
from collections.abc import Collection, Mapping

from asap.core.errors import PlanError
from asap.plans.plan import Plan, Remat

PRECISION_AWARE = "use_precision_aware_optimizer"
_DISTRIBUTED, _SEQUENCE = "use_distributed_optimizer", "sequence_parallel"
_OF_LEVELS, _OVERLAPPED_EXPERTS = "hierarchical_context_parallel_sizes", "overlap_moe_expert_parallel_comm"
_DROPOUT = 0.1
_STAGES = frozenset(
    ["pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank", "num_layers_per_virtual_pipeline_stage"]
)
_UNEVEN = (
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
    "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split",
)
"""Options that give the first and the last stage other layers."""


def check(plan: Plan, current: Mapping[str, object]) -> None:
    """Check a plan beside the arguments as they are, Megatron-LM's or those of what runs on its core.

    Raises:
        PlanError: Megatron-LM refuses it.
    """
    refused = next((reason for reason, holds in _refusals(plan, current).items() if holds), None)
    if refused is not None:
        raise PlanError(f"Megatron-LM refuses it: {refused}")


def required(plan: Plan, current: Mapping[str, object], changed: Collection[str]) -> dict[str, bool]:
    """Options that change with a plan beside those that say it; ``False`` is one to leave out.

    Args:
        plan: what to run.
        current: the arguments as they are.
        changed: those that change to say the plan.
    """
    added = {option: True for option in _needed(plan, current) if not _is_set(current, option)}
    return added | {option: False for option in _outdated(plan, changed) if _is_set(current, option)}


def _needed(plan: Plan, current: Mapping[str, object]) -> list[str]:
    mixture = plan.degree("expert") > 1 or _is_set(current, "num_experts")
    found = [PRECISION_AWARE, _DISTRIBUTED] if _is_precision_aware(plan) else []
    return [*found, _SEQUENCE] if mixture and plan.degree("model") > 1 else found


def _outdated(plan: Plan, changed: Collection[str]) -> list[str]:
    """Options that a plan leaves no room for."""
    split = plan.degree("model") > 1
    found = [] if split else ["tp_comm_overlap"]
    found += [] if plan.degree("expert") > 1 else [_OVERLAPPED_EXPERTS]
    if not split or plan.remat not in (None, Remat.FULL):
        found.append("distribute_saved_activations")
    if plan.degree("stage") == 1 or plan.pipeline_repeats == 1:
        found.append("overlap_param_gather_with_optimizer_step")
    return [*found, *_UNEVEN] if _STAGES & set(changed) else found


def _refusals(plan: Plan, current: Mapping[str, object]) -> dict[str, bool]:
    """Reasons, and whether they hold."""
    moved, context, staged = "optimizer" in plan.offload, plan.degree("seq"), plan.degree("stage") > 1
    fsdp2 = _is_set(current, "use_torch_fsdp2")
    fp8_weights = _is_set(current, "fp8_param_gather") and current.get("fp8_recipe", "delayed") != "delayed"
    graphs_of_layers = current.get("cuda_graph_impl") in ("local", "transformer_engine")
    overlapped = _is_set(current, _OVERLAPPED_EXPERTS) and plan.degree("expert") > 1
    sizes = re.findall(r"\d+", str(current[_OF_LEVELS])) if _is_set(current, _OF_LEVELS) else [context]
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
        f"{_OVERLAPPED_EXPERTS} goes with an interleaved pipeline only": (
            overlapped and staged and plan.pipeline_repeats == 1
        ),
        f"{_OVERLAPPED_EXPERTS} does not go with full recomputation": overlapped and plan.remat is Remat.FULL,
        f"{_OF_LEVELS} multiplies to {levels}, not to {context}": levels != context,
    }


def has_attention_dropout(current: Mapping[str, object]) -> bool:
    """Whether attention has dropout, as it has by default."""
    return str(current.get("attention_dropout", _DROPOUT)) not in ("0", "0.0")


def _is_precision_aware(plan: Plan) -> bool:
    """Whether a plan has an optimizer that Megatron-LM calls so: with moments on the host, or of less than fp32."""
    return bool("optimizer" in plan.offload or plan.first_moment or plan.second_moment)


def _is_set(current: Mapping[str, object], option: str) -> bool:
    return str(current.get(option)).casefold() not in ("none", "false", "", "0")
