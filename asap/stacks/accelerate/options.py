"""Accelerate's settings where DeepSpeed shards the run, and as options of transformers' Trainer."""

from collections.abc import Mapping
from typing import Any

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.stacks.accelerate.settings import FSDP, KIND, SIZES, is_fsdp, lines_to_paste, strategy
from asap.stacks.deepspeed.settings import ACCUMULATION, SEQUENCE, STAGE
from asap.stacks.deepspeed.trainer import KEEP, RECOMPUTE, SECTION, is_run_by_yaml
from asap.stacks.writing import yaml_lines

CONFIG = "deepspeed_config"
IN_FILE = f"{CONFIG}.deepspeed_config_file"
OF_DEEPSPEED = {
    STAGE: f"{CONFIG}.zero_stage",
    "zero_optimization.offload_optimizer.device": f"{CONFIG}.offload_optimizer_device",
    "zero_optimization.offload_param.device": f"{CONFIG}.offload_param_device",
    ACCUMULATION: f"{CONFIG}.gradient_accumulation_steps",
    SEQUENCE: f"{SIZES}.{SIZES}_sp_size",
}
"""DeepSpeed's settings and what Accelerate calls them."""
MARK = "distributed_type"
"""Among a run's settings of DeepSpeed: Accelerate says them itself."""


def is_said_by_accelerate(settings: Mapping[str, object] | None) -> bool:
    """Whether settings of DeepSpeed stand in Accelerate's configuration."""
    return settings is not None and str(settings.get(MARK)).upper() == "DEEPSPEED"


def deepspeed_lines(changed: Mapping[str, object]) -> str:
    """Changed settings of DeepSpeed in Accelerate's words.

    Raises:
        PlanError: it has none for one of them.
    """
    unsaid = [key for key in changed if key not in OF_DEEPSPEED and not key.startswith(f"{SECTION}.")]
    if unsaid:
        raise PlanError(
            f"Accelerate says {plain(', '.join(unsaid), 80)} in a DeepSpeed JSON alone", hint=f"{IN_FILE}: FILE.json"
        )
    return lines_to_paste({OF_DEEPSPEED.get(key, key): value for key, value in changed.items()})


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
