"""What Megatron-LM refuses, needs beside a plan, and has to change with it."""

import math
import re
from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.plan import Plan
from asap.stacks.megatron.releases import Changes, is_set
from asap.stacks.megatron.stages import COUNTED, FIRST_AND_LAST, LAYERS_EACH, PIPELINE, VIRTUAL, still_counted
from asap.stacks.registry import spec
from asap.stacks.rules import dropped, facts_of, needed, refusals

PRECISION_AWARE = "use_precision_aware_optimizer"
CHECKPOINTS, _OF_FSDP, _USUAL = "ckpt_format", "fsdp_dtensor", "torch_dist"
_FSDP, _OF_LEVELS, _SEQUENCE = "use_megatron_fsdp", "hierarchical_context_parallel_sizes", "sequence_parallel"
_BIAS, _NO_BIAS = "add_bias_linear", "disable_bias_linear"
_DROPOUT = 0.1

Settings = Mapping[str, object]


def check(plan: Plan, current: Settings) -> None:
    """Check a plan beside the arguments as they are, Megatron-LM's or those of what runs on its core.

    Raises:
        PlanError: Megatron-LM refuses it.
    """
    context, found = plan.degree("seq"), refusals(spec("megatron").rules, facts_of(plan), current)
    levels = (
        math.prod(map(int, re.findall(r"\d+", str(current[_OF_LEVELS])))) if is_set(current, _OF_LEVELS) else context
    )
    other = f"{_OF_LEVELS} multiplies to {levels}, not to {context}" if levels != context else None
    if (reason := next(found, other)) is not None:
        raise PlanError(f"Megatron-LM refuses it: {reason}")


def required(plan: Plan, current: Settings) -> dict[str, str]:
    """Options that a plan needs beside those that say it."""
    found = needed(spec("megatron").rules, facts_of(plan), current)
    return {option: value for option, value in found.items() if not is_set(current, option)}


def of_start(plan: Plan, global_batch: int | None, sequence: int) -> Changes:
    """What a plan is predicted with where nothing runs yet: a distributed optimizer, bf16, sequence parallelism.

    Args:
        plan: what to run.
        global_batch: sequences in a step.
        sequence: tokens in a sequence.
    """
    batch: Changes = {"global_batch_size": str(global_batch)} if global_batch else {}
    split: Changes = {_SEQUENCE: True} if plan.degree("model") > 1 else {}
    return {**batch, "seq_length": str(sequence), "bf16": True, "use_distributed_optimizer": True, **split}


def has_attention_dropout(current: Settings) -> bool:
    """Whether attention has dropout, as it has by default."""
    return str(current.get("attention_dropout", _DROPOUT)) not in ("0", "0.0")


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
    shards = wanted.get(_FSDP, is_set(current, _FSDP))
    if shards and current.get(CHECKPOINTS) != _OF_FSDP:
        return {CHECKPOINTS: _OF_FSDP}
    return {CHECKPOINTS: _USUAL} if not shards and current.get(CHECKPOINTS) == _OF_FSDP else {}


def remarks(changed: Changes, current: Settings) -> str:
    """What arguments need that are new to a run, as a comment of a shell."""
    new = [key for key, value in changed.items() if value is not False and current.get(key) is None]
    found = [f"{key.replace('_', '-')} {said}" for key in new if (said := spec("megatron").remarks.get(key))]
    return f"  # {'; '.join(found)}" if found else ""
