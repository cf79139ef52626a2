"""FSDP as an argument of Hugging Face's Trainer: ``--fsdp "full_shard auto_wrap"`` (transformers,
``TrainingArguments.fsdp``), which makes what Accelerate's configuration says otherwise."""

from collections.abc import Mapping
from typing import Any

from asap.core.errors import PlanError
from asap.plans.accelerate.settings import FSDP, KIND, is_fsdp, lines_to_paste, strategy
from asap.plans.deepspeed.trainer import KEEP, RECOMPUTE, SECTION, is_run_by_yaml
from asap.plans.yaml_lines import yaml_lines

OPTION = "fsdp"
_OFFLOADS = f"{FSDP}.fsdp_offload_params"
_STRATEGY = f"{FSDP}.fsdp_sharding_strategy"
_RECOMPUTES = f"{FSDP}.fsdp_activation_checkpointing"
_IMPLIED = (f"{FSDP}.fsdp_version", f"{FSDP}.fsdp_auto_wrap_policy")
"""What the option says by itself: each layer a unit, of the version that the Trainer has by default."""
_RECOMPUTE, _KEEP = f"{SECTION}.{RECOMPUTE}", f"{SECTION}.{KEEP}"
WORDS = ("full_shard", "shard_grad_op", "no_shard", "hybrid_shard", "hybrid_shard_zero2")


def of_option(said: Any, by_default: str = WORDS[0]) -> dict[str, Any]:
    """What the option says in Accelerate's words; without it replicas.

    Args:
        said: its words.
        by_default: the strategy where none is among them (``--fsdp auto_wrap``).
    """
    words = str(said or "").casefold().replace(",", " ").split()
    if not words:
        return {KIND: "MULTI_GPU"}
    named = next((word for word in words if word in WORDS), by_default)
    return {KIND: "FSDP", _STRATEGY: named.upper(), _OFFLOADS: "offload" in words}


def is_said_by_trainer(settings: Mapping[str, object]) -> bool:
    """Whether the program's arguments say how it is sharded, and no configuration of Accelerate."""
    return f"{SECTION}.{OPTION}" in settings


def option_lines(changed: Mapping[str, str], current: Mapping[str, object]) -> str:
    """Changed settings as options of the program, or as lines of the YAML that holds its arguments.

    Raises:
        PlanError: they are not said so.
    """
    options = {key: value for key, value in changed.items() if key.startswith(f"{SECTION}.")}
    if _RECOMPUTES in changed:
        options[_RECOMPUTE] = changed[_RECOMPUTES]
    unsaid = changed.keys() - options.keys() - {KIND, _STRATEGY, _OFFLOADS, _RECOMPUTES, *_IMPLIED}
    if unsaid:
        raise PlanError(f"--{OPTION} of the Trainer has no word for {', '.join(sorted(unsaid))}")
    if changed.keys() & {KIND, _STRATEGY, _OFFLOADS}:
        after = {**current, **changed}
        offloads = "offload " if str(after.get(_OFFLOADS)).casefold() == "true" else ""
        words = f'"{strategy(after).lower()} {offloads}auto_wrap"' if is_fsdp(after) else '""'
        options[f"{SECTION}.{OPTION}"] = words
    if _KEEP in current and _RECOMPUTE in options:
        options[_KEEP] = str(options.pop(_RECOMPUTE).casefold() != "true").lower()
    if is_run_by_yaml(current):
        return yaml_lines({key.removeprefix(f"{SECTION}."): value for key, value in options.items()})
    return lines_to_paste(options)
