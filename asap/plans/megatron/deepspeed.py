"""Megatron-DeepSpeed's arguments for a plan, where they are not Megatron-LM's (deepspeedai/Megatron-DeepSpeed,
``megatron/arguments.py``, ``megatron/core/parallel_state.py``)."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.plan import Plan, Remat

ULYSSES = "ds_sequence_parallel_size"
RECOMPUTES_ALL = ("checkpoint_activations", "deepspeed_activation_checkpointing")
_ELSEWHERE = ("context_parallel_size", "num_virtual_stages_per_pipeline_rank", "optimizer_cpu_offload")
RECOMPUTATION = ("recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules")


def is_megatron_deepspeed(arguments: Mapping[str, object]) -> bool:
    """Whether a run's arguments are Megatron-DeepSpeed's."""
    return any(arguments.get(key) not in (None, False) for key in ("deepspeed", "deepspeed_config", ULYSSES))


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
    _check(plan)
    changed = {key: value for key, value in arguments.items() if key not in _ELSEWHERE}
    if str(current.get(ULYSSES) or 1) != str(plan.degree("seq")):
        changed[ULYSSES] = str(plan.degree("seq"))
    own = [key for key in RECOMPUTES_ALL if current.get(key) not in (None, False)]
    if own and any(key in changed for key in RECOMPUTATION):
        kept = {key: value for key, value in changed.items() if key not in RECOMPUTATION or value not in (False, None)}
        return kept | dict.fromkeys(own, False)
    return changed


def reminder(changed: Mapping[str, str | bool]) -> str:
    """What a launch line has to say besides, as a comment of a shell."""
    same = "train_micro_batch_size_per_gpu of the DeepSpeed configuration is the micro-batch"
    return f"  # {same}" if "micro_batch_size" in changed else ""


def _check(plan: Plan) -> None:
    if plan.degree("data") > 1 or plan.pipeline_repeats > 1 or plan.offload:
        reason = "Megatron-DeepSpeed has no arguments for FSDP, virtual pipeline stages or offloading"
        raise PlanError(reason, hint="its DeepSpeed configuration has ZeRO stages and offloading")
    if plan.first_moment or plan.second_moment:
        raise PlanError("Megatron-DeepSpeed has no arguments for the precision of moments")
    if plan.degree("seq") > 1 and plan.degree("model") * plan.degree("stage") > 1:
        raise PlanError("DeepSpeed's sequence parallelism works with neither tensor nor pipeline parallelism")
    if plan.remat not in (None, Remat.NONE, Remat.SELECTIVE, Remat.FULL):
        raise PlanError(f"Megatron-DeepSpeed has no recomputation like remat={plan.remat.value}")
