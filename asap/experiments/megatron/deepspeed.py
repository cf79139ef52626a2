"""Arguments of Megatron-DeepSpeed (deepspeedai/Megatron-DeepSpeed, megatron/arguments.py) as Megatron-LM's."""

from typing import Any

from asap.core.errors import ConfigError
from asap.experiments.megatron.architecture import mlp_width
from asap.experiments.settings.stack_settings import StackSettings
from asap.stacks.megatron.forks import EXPERT_DEGREE, EXPERTS_SPLIT, ULYSSES, ZERO

_TENSOR, _PIPELINE = "tensor_model_parallel_size", "pipeline_model_parallel_size"
_INSTEAD = "say the plan with --plan, and give the model's config.json as --config"


def of_deepspeed(settings: StackSettings) -> StackSettings:
    """The same arguments in Megatron-LM's words.

    Raises:
        ConfigError: DeepSpeed refuses them, or a plan cannot say them.
    """
    said: dict[str, Any] = {}
    if ULYSSES in settings:
        said |= {"context_parallel_size": settings[ULYSSES], "cp_comm_type": "a2a"}
    if "num_key_value_heads" in settings:
        said |= {"group_query_attention": True, "num_query_groups": settings["num_key_value_heads"]}
    if settings.flag("no_pipeline_parallel"):
        said |= {_PIPELINE: 1}
    said |= _experts(settings)
    stage = settings.whole(ZERO) or 0
    if stage not in range(4):
        raise settings.wrong(ZERO, "0 to 3")
    if stage:
        said |= {"use_distributed_optimizer": True}
    if stage > 1 and str(said.get(_PIPELINE, settings.get(_PIPELINE, 1))) != "1":
        reason = f"{ZERO} is {stage}, which DeepSpeed refuses with pipeline stages"
        raise ConfigError(
            reason, where=settings.where(ZERO), hint="add zero_stage=1, or pipeline_model_parallel_size=1"
        )
    return settings.overridden(said)


def _experts(settings: StackSettings) -> dict[str, Any]:
    """DeepSpeed's experts: in the last of every ``expert_interval`` layers, each as wide as an MLP of the model."""
    counts = set(settings.words("num_experts"))
    if counts <= {"1"}:
        return {"num_experts": None} if counts else {}
    if len(counts) > 1:
        reason = "num_experts: layers with different numbers of experts are not modelled"
        raise ConfigError(reason, where=settings.where("num_experts"), hint=_INSTEAD)
    split = settings.flag(EXPERTS_SPLIT)
    if not split and str(settings.get(_TENSOR, 1)) != "1":
        reason = f"num_experts: experts that tensor parallelism does not split (no {EXPERTS_SPLIT}) are not modelled"
        raise ConfigError(reason, where=settings.where("num_experts"), hint=_INSTEAD)
    residual = settings.text("mlp_type", "standard") == "residual"
    drops = not settings.flag("disable_moe_token_dropping")
    return {
        "num_experts": counts.pop(),
        "moe_router_topk": settings.get("topk", 1),
        "moe_layer_freq": settings.get("expert_interval", 2),
        "moe_shared_expert_intermediate_size": mlp_width(settings) if residual else None,
        "expert_model_parallel_size": settings.get(EXPERT_DEGREE, 1),
        "moe_pad_expert_input_to_capacity": drops,
        "moe_expert_capacity_factor": settings.get("moe_train_capacity_factor", 1.0) if drops else None,
    }
