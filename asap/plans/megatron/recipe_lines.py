"""Megatron-LM's arguments as settings of a recipe of NeMo 2, as words of ``nemo llm pretrain``
(``nemo/lightning/pytorch/strategies/megatron_strategy.py``, ``nemo/collections/llm/recipes``)."""

from collections.abc import Mapping

from asap.plans.megatron.arguments import FSDP, GLOBAL_BATCH, INSTANCES, MICRO_BATCH, OFFLOAD, STRATEGY
from asap.plans.megatron.dependents import CHECKPOINTS, OVERLAP
from asap.plans.megatron.requirements import PRECISION_AWARE
from asap.plans.megatron.sections import VIRTUAL_SIZE, is_of_stages, yaml_values

RECIPE_WORDS = "words_of_recipe"
"""Among settings: that a recipe is changed by a command."""
_SECTIONS = {
    **dict.fromkeys((MICRO_BATCH, GLOBAL_BATCH), "data"),
    **dict.fromkeys(
        (OFFLOAD, PRECISION_AWARE, "use_distributed_optimizer", "overlap_param_gather_with_optimizer_step"),
        "optim.config",
    ),
    **dict.fromkeys(("tp_comm_overlap", "distribute_saved_activations", *OVERLAP), "model.config"),
    **dict.fromkeys((STRATEGY, INSTANCES), "trainer.strategy.ddp"),
}
_SHARDING = {FSDP: "megatron", "use_torch_fsdp2": "pytorch"}


def recipe_lines(arguments: Mapping[str, str | bool]) -> str:
    """Arguments that change, as words of a command."""
    found = dict(_setting(key, value) for key, value in yaml_values(arguments).items() if key != CHECKPOINTS)
    return " ".join(f"{key}={value}" for key, value in found.items())


def _setting(key: str, value: str | bool | None) -> tuple[str, str | bool | None]:
    if key in _SHARDING:
        return "trainer.strategy.fsdp", _SHARDING[key] if value else None
    if key.startswith("recompute"):
        return f"model.config.{key}", value
    name = VIRTUAL_SIZE if is_of_stages(key) else key
    return f"{_SECTIONS.get(key, 'trainer.strategy')}.{name}", value
