"""Megatron's arguments as its forks have them: Megatron-DeepSpeed and ms-swift."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.plan import Offload, Plan, Remat
from asap.stacks.deepspeed.settings import offloaded

ULYSSES, ZERO = "ds_sequence_parallel_size", "zero_stage"
EXPERT_DEGREE, EXPERTS_SPLIT = "moe_expert_parallel_size", "enable_expert_tensor_parallelism"
RECOMPUTES_ALL = ("checkpoint_activations", "deepspeed_activation_checkpointing")
_EXPERT = "expert_model_parallel_size"
_ELSEWHERE = (
    "context_parallel_size", "num_virtual_stages_per_pipeline_rank", "optimizer_cpu_offload", _EXPERT,
    "expert_tensor_parallel_size", "use_megatron_fsdp", "data_parallel_sharding_strategy", "use_distributed_optimizer",
    "num_distributed_optimizer_instances", "use_torch_fsdp2",
)  # fmt: skip
"""Arguments of Megatron-LM that it does not have."""
RECOMPUTATION = ("recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules")


def is_megatron_deepspeed(arguments: Mapping[str, object]) -> bool:
    """Whether a run's arguments are Megatron-DeepSpeed's."""
    return any(arguments.get(key) not in (None, False) for key in ("deepspeed", "deepspeed_config", ULYSSES))


def stage_of(arguments: Mapping[str, object]) -> int:
    """The stage of ZeRO that a run has; 0 where none is said."""
    said = str(arguments.get(ZERO) or 0)
    return int(said) if said in ("1", "2", "3") else 0


def offloaded_by_deepspeed(arguments: Mapping[str, object]) -> tuple[Offload, ...]:
    """What the settings of DeepSpeed beside the arguments offload."""
    return offloaded(arguments, stage_of(arguments))


def in_words_of_deepspeed(
    plan: Plan, current: Mapping[str, object], arguments: Mapping[str, str | bool]
) -> dict[str, str | bool]:
    """Arguments of Megatron-LM that change, as Megatron-DeepSpeed has them.

    Args:
        plan: what to run.
        current: the arguments as they are.
        arguments: what changes; ``False`` is an argument to leave out.

    Raises:
        PlanError: Megatron-DeepSpeed cannot express the plan.
    """
    _check(plan, current)
    changed = {key: value for key, value in arguments.items() if key not in _ELSEWHERE}
    if str(current.get(ULYSSES) or 1) != str(plan.degree("seq")):
        changed[ULYSSES] = str(plan.degree("seq"))
    if str(current.get(EXPERT_DEGREE) or 1) != str(plan.degree("expert")):
        changed[EXPERT_DEGREE] = str(plan.degree("expert"))
    if stage_of(current) == 3 and plan.degree("data") == 1 and plan.degree("replica") > 1:
        changed[ZERO] = "0"
    own = [key for key in RECOMPUTES_ALL if current.get(key) not in (None, False)]
    if own and any(key in changed for key in RECOMPUTATION):
        kept = {key: value for key, value in changed.items() if key not in RECOMPUTATION or value not in (False, None)}
        return kept | dict.fromkeys(own, False)
    return changed


def reminder(changed: Mapping[str, str | bool]) -> str:
    """What a launch line has to say besides, as a comment of a shell."""
    keys = {"micro_batch_size": "train_micro_batch_size_per_gpu", ZERO: "zero_optimization.stage"}
    also = [key for argument, key in keys.items() if argument in changed]
    return f"  # change {' and '.join(also)} of the DeepSpeed configuration likewise" if also else ""


def _check(plan: Plan, current: Mapping[str, object]) -> None:
    stage, sharded = stage_of(current), plan.degree("data") > 1
    if (sharded and stage != 3) or plan.pipeline_repeats > 1 or set(plan.offload) != {*offloaded_by_deepspeed(current)}:
        reason = "Megatron-DeepSpeed has no arguments for FSDP, virtual pipeline stages or offloading"
        raise PlanError(reason, hint="its DeepSpeed configuration has ZeRO stages and offloading")
    if sharded and plan.degree("replica") > 1:
        raise PlanError("ZeRO stage 3 shards over all data-parallel processes: data alone, or replica alone")
    _check_pairs(plan, current, stage, sharded)
    if plan.first_moment or plan.second_moment:
        raise PlanError("Megatron-DeepSpeed has no arguments for the precision of moments")
    if plan.degree("seq") > 1 and plan.degree("model") * plan.degree("stage") > 1:
        raise PlanError("DeepSpeed's sequence parallelism works with neither tensor nor pipeline parallelism")
    if plan.remat not in (None, Remat.NONE, Remat.SELECTIVE, Remat.FULL):
        raise PlanError(f"Megatron-DeepSpeed has no recomputation like remat={plan.remat.value}")


def _check_pairs(plan: Plan, current: Mapping[str, object], stage: int, sharded: bool) -> None:
    """Raise PlanError where DeepSpeed does not have two kinds of parallelism together."""
    stages, experts = plan.degree("stage") > 1, plan.degree("expert") > 1
    if stages and (stage == 2 or sharded):
        raise PlanError(f"DeepSpeed has no pipeline stages with ZeRO stage {stage}")
    if experts and (sharded or stages or plan.degree("seq") > 1):
        raise PlanError(
            "DeepSpeed's expert parallelism works with neither ZeRO stage 3, pipeline nor sequence parallelism"
        )
    if experts and plan.degree("model") > 1 and current.get(EXPERTS_SPLIT) in (None, False):
        raise PlanError(f"tensor parallelism splits experts only with --{EXPERTS_SPLIT.replace('_', '-')}")


def is_set(current: Mapping[str, object], option: str) -> bool:
    """Whether an option is on, or has a value."""
    return str(current.get(option)).casefold() not in ("none", "false", "", "0")


OF_SWIFT = "command_of_swift"
"""Among settings: that ms-swift takes them."""
_OFF = {"recompute_granularity": "none", "use_distributed_optimizer": "false", "sequence_parallel": "false"}


def is_of_swift(arguments: Mapping[str, object]) -> bool:
    """Whether ms-swift runs these arguments."""
    return OF_SWIFT in arguments


def in_words_of_swift(arguments: Mapping[str, str | bool]) -> dict[str, str | bool]:
    """Arguments that change; ``False`` is one to leave out."""
    return {key: _OFF.get(key, value) if value is False else value for key, value in arguments.items()}
