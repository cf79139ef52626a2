"""Arguments that change time or memory and that the prediction does not use."""

from asap.experiments.settings.stack_settings import StackSettings
from asap.experiments.settings.unused_settings import note_on_unused
from asap.stacks.megatron.arguments import is_fully_sharded

_USUAL: dict[str, object] = {
    "fine_grained_activation_offloading": False,
    "cpu_offloading": False,
    "cpu_offloading_num_layers": False,
    "activation_offload_fraction": False,
    "offload_optimizer_states": False,
    "distribute_saved_activations": False,
    "hybrid_context_parallel": False,
    "ds_sequence_parallel_fpdt": False,
    "freeze_all_layers": False,
    "optimizer_offload_fraction": 1.0,
    "outer_dp_sharding_strategy": "no_shard",
}
"""Argument → what it is by default (``megatron/training/arguments.py``; ``model_parallel_config.py``;
Megatron-DeepSpeed)."""
_INSTANCES = {"num_distributed_optimizer_instances": 1}
"""A plan says them where parameters are sharded."""


def not_predicted(settings: StackSettings) -> tuple[str, ...]:
    """One note that names them all; none where all are as Megatron-LM has them."""
    return note_on_unused(settings, _USUAL | ({} if is_fully_sharded(settings) else _INSTANCES))
