"""Megatron's arguments as its releases and forks have them: those of the past, Megatron-DeepSpeed's and ms-swift's.

A release is told by arguments that no later one takes (``releases`` of the table).
"""

from collections.abc import Mapping
from typing import Any

from asap.core.errors import PlanError
from asap.plans.plan import Plan
from asap.stacks.reading import offloaded
from asap.stacks.registry import lacking, spec
from asap.stacks.rules import facts_of, meant, refusals
from asap.stacks.stack_settings import StackSettings

JOINT = "joint_of_options"
"""Among settings: what joins the words of an option in a fork that does not write them as Megatron-LM does."""
OF_SWIFT = "command_of_swift"
"""Among settings: that ms-swift takes them."""
LAST = "decoder_last_pipeline_num_layers"
ULYSSES, ZERO = "ds_sequence_parallel_size", "zero_stage"
RECOMPUTES_ALL = ("checkpoint_activations", "deepspeed_activation_checkpointing")
RECOMPUTATION = ("recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules")
_METHOD = "activations_checkpoint_method"
_SWITCH = RECOMPUTES_ALL[0]
"""Megatron-LM refuses it since 2022; Megatron-DeepSpeed takes it."""
_OFF = {"recompute_granularity": "none", "use_distributed_optimizer": "false", "sequence_parallel": "false"}
"""How ms-swift takes back what it sets by default."""
_NO_ARGUMENTS = "Megatron-DeepSpeed has no arguments for FSDP, virtual pipeline stages or offloading"
_ELSEWHERE = "its DeepSpeed configuration has ZeRO stages and offloading"

Arguments = Mapping[str, object]
Changes = dict[str, str | bool]
"""Arguments that change; ``False`` is one to leave out."""


def is_set(current: Arguments, option: str) -> bool:
    """Whether an option is on, or has a value."""
    return str(current.get(option)).casefold() not in ("none", "false", "", "0")


def is_megatron_deepspeed(arguments: Arguments) -> bool:
    """Whether a run's arguments are Megatron-DeepSpeed's."""
    return any(is_set(arguments, key) for key in ("deepspeed", "deepspeed_config", ULYSSES))


def is_of_swift(arguments: Arguments) -> bool:
    """Whether ms-swift runs these arguments."""
    return OF_SWIFT in arguments


def stage_of(arguments: Arguments) -> int:
    """The stage of ZeRO that a run has; 0 where none is said."""
    said = str(arguments.get(ZERO) or 0)
    return int(said) if said in ("1", "2", "3") else 0


def lacks(current: Arguments, key: str) -> str | None:
    """An argument on record that no release takes which has ``key``; ``None`` where none tells."""
    past = (_SWITCH,) if is_megatron_deepspeed(current) else ()
    return lacking(spec("megatron"), current, key, past)


def in_words_of_release(arguments: Mapping[str, str | bool], current: Arguments) -> Changes:
    """Arguments that change, as those on record are said: by a release of the past, or to ms-swift.

    Raises:
        PlanError: the release lacks one.
    """
    if is_of_swift(current):
        return {key: _OFF.get(key, value) if value is False else value for key, value in arguments.items()}
    changed = _recomputing(arguments, current) if lacks(current, RECOMPUTATION[0]) else dict(arguments)
    for key, value in changed.items():
        sign = lacks(current, key) if value is not False else None
        if sign is not None and (current.get(key) is None or key in RECOMPUTATION):
            reason = f"a version of Megatron-LM that takes --{_written(sign)} has no --{_written(key)}"
            raise PlanError(reason, hint="a later version has it")
    return changed


def _recomputing(arguments: Mapping[str, str | bool], current: Arguments) -> Changes:
    """Recomputation of all layers by the switch of before 2022, none by leaving its switches out."""
    rest = {key: value for key, value in arguments.items() if key not in RECOMPUTATION}
    granularity = arguments.get(RECOMPUTATION[0])
    if granularity is None:
        return rest
    if granularity == "full":
        return {**rest, _SWITCH: True}
    if granularity is not False:
        return dict(arguments)
    own = [key for key in (*RECOMPUTES_ALL, _METHOD) if is_set(current, key)]
    return rest | dict.fromkeys(own or [key for key in RECOMPUTATION if is_set(current, key)], False)


def _written(key: str) -> str:
    return key.replace("_", "-")


def in_words_of_deepspeed(plan: Plan, current: Arguments, arguments: Mapping[str, str | bool]) -> Changes:
    """Arguments of Megatron-LM that change, as Megatron-DeepSpeed has them.

    Args:
        plan: what to run.
        current: the arguments as they are.
        arguments: what changes.

    Raises:
        PlanError: Megatron-DeepSpeed cannot express the plan.
    """
    table, stage = spec("megatron-deepspeed"), {**current, ZERO: stage_of(current)}
    moved = set(plan.offload) != {*offloaded(table, current)}
    refused = _NO_ARGUMENTS if moved else next(refusals(table.rules, facts_of(plan), stage), None)
    if refused is not None:
        raise PlanError(refused, hint=_ELSEWHERE if refused == _NO_ARGUMENTS else None)
    missing = table.names["missing"]
    changed = {key: value for key, value in arguments.items() if key not in missing}
    if str(current.get(ULYSSES) or 1) != str(plan.degree("seq")):
        changed[ULYSSES] = str(plan.degree("seq"))
    if stage_of(current) == 3 and plan.degree("data") == 1 and plan.degree("replica") > 1:
        changed[ZERO] = "0"
    own = [key for key in RECOMPUTES_ALL if is_set(current, key)]
    if own and any(key in changed for key in RECOMPUTATION):
        changed = {key: value for key, value in changed.items() if key not in RECOMPUTATION[1:] or value}
        changed |= dict.fromkeys(own, False)
    return changed


def reminder(changed: Mapping[str, str | bool]) -> str:
    """What a launch line of Megatron-DeepSpeed has to say besides, as a comment of a shell."""
    keys = {"micro_batch_size": "train_micro_batch_size_per_gpu", ZERO: "zero_optimization.stage"}
    also = [key for argument, key in keys.items() if argument in changed]
    return f"  # change {' and '.join(also)} of the DeepSpeed configuration likewise" if also else ""


_KEY_HEADS = ("num_key_value_heads", "num_query_groups", "group_query_attention", "attention_head_type")


def rename_fork_options(settings: StackSettings) -> StackSettings:
    """The same arguments, with what others call otherwise under the names of Megatron-LM."""
    renamed = spec("megatron").renamed
    said: dict[str, Any] = {today: settings[key] for key, today in renamed.items() if key in settings}
    if settings.flag("deepspeed") and {*settings.words("num_experts")} == {"1"}:  # one a layer
        said["num_experts"] = None
    said |= meant(spec("megatron").means, settings)
    return settings.overridden(said) if said else settings


def left_to_checkpoint(settings: StackSettings) -> frozenset[str]:
    """What the checkpoint decides under ``--use-checkpoint-args``, and scripts leave to it (``checkpointing.py``)."""
    said = not settings.flag("use_checkpoint_args") or any(key in settings for key in _KEY_HEADS)
    return frozenset() if said else frozenset(("num_key_value_heads",))
