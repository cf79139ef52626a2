"""Arguments of Megatron-DeepSpeed (deepspeedai/Megatron-DeepSpeed, megatron/arguments.py) as Megatron-LM's."""

from typing import Any

from asap.core.errors import ConfigError
from asap.experiments.stack_settings import StackSettings
from asap.plans.megatron.deepspeed import ULYSSES

_INSTEAD = "say the plan with --plan, and give the model's config.json as --config"


def of_deepspeed(settings: StackSettings) -> StackSettings:
    """The same arguments in Megatron-LM's words.

    Raises:
        ConfigError: they say ZeRO beyond stage 1, or DeepSpeed's experts.
    """
    stage = settings.whole("zero_stage") or 0
    if stage > 1:
        reason = f"zero_stage: Megatron-DeepSpeed with ZeRO stage {stage} is not read"
        raise ConfigError(reason, where=settings.where("zero_stage"), hint=_INSTEAD)
    if any(word not in ("0", "1") for word in settings.words("num_experts")):
        raise ConfigError("num_experts: experts of DeepSpeed are not read", where=settings.where(), hint=_INSTEAD)
    said: dict[str, Any] = {"use_distributed_optimizer": True} if stage == 1 else {}
    if ULYSSES in settings:
        said |= {"context_parallel_size": settings[ULYSSES], "cp_comm_type": "a2a"}
    if "num_key_value_heads" in settings:
        said |= {"group_query_attention": True, "num_query_groups": settings["num_key_value_heads"]}
    if settings.flag("no_pipeline_parallel"):
        said |= {"pipeline_model_parallel_size": 1}
    if settings.words("num_experts"):
        said |= {"num_experts": None}
    return settings.overridden(said)
