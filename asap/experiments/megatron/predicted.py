"""Arguments that change time or memory and that the prediction does not use: said, never ignored."""

from asap.core.text import plain
from asap.experiments.stack_settings import StackSettings
from asap.plans.megatron.arguments import is_fully_sharded

_OFF = ("", "0", "false", "none", "null", "[]")
_FLAGS = (
    "fine_grained_activation_offloading", "cpu_offloading", "cpu_offloading_num_layers", "activation_offload_fraction",
    "distribute_saved_activations", "hybrid_context_parallel", "ds_sequence_parallel_fpdt", "freeze_all_layers",
    "offload_optimizer_states",
)  # fmt: skip
"""Off by default (``megatron/training/arguments.py``; ``model_parallel_config.py``; Megatron-DeepSpeed)."""
_DEFAULTS = {"optimizer_offload_fraction": 1.0, "outer_dp_sharding_strategy": "no_shard"}
_INSTANCES = "num_distributed_optimizer_instances"


def not_predicted(settings: StackSettings) -> tuple[str, ...]:
    """One note that names them all; none where all are as Megatron-LM has them."""
    found = [key for key in _FLAGS if str(settings.get(key, "")).casefold() not in _OFF]
    found += [key for key, usual in _DEFAULTS.items() if key in settings and _differs(settings[key], usual)]
    if str(settings.get(_INSTANCES, 1)) != "1" and not is_fully_sharded(settings):
        found.append(_INSTANCES)
    shown = (key if settings[key] is True else f"{key}={plain(settings[key], 40)}" for key in found)
    return (f"the prediction does not use {', '.join(shown)}",) if found else ()


def _differs(said: object, usual: float | str) -> bool:
    if isinstance(usual, str):
        return str(said) != usual
    try:
        return float(str(said)) != usual
    except ValueError:
        return True
