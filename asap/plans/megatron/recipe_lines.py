"""Megatron-LM's arguments as settings of a recipe of NeMo 2: statements of Python, or words of ``nemo llm pretrain``
(``nemo/lightning/pytorch/strategies/megatron_strategy.py``, ``nemo/collections/llm/recipes``)."""

import re
from collections.abc import Mapping

from asap.plans.megatron.arguments import FSDP, GLOBAL_BATCH, INSTANCES, MICRO_BATCH, OFFLOAD, STRATEGY
from asap.plans.megatron.dependents import CHECKPOINTS, OVERLAP
from asap.plans.megatron.requirements import PRECISION_AWARE
from asap.plans.megatron.sections import VIRTUAL_SIZE, is_of_stages, literal, yaml_values

RECIPE_WORDS = "words_of_recipe"
"""Among settings: whether a recipe is changed by a ``command``, or in ``python``."""
_RECIPE = "recipe."
_STATEMENT = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+ = ", re.ASCII)
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


def recipe_lines(arguments: Mapping[str, str | bool], form: object) -> str:
    """Arguments that change, a line each in Python, else as words of a command."""
    found = dict(_setting(key, value) for key, value in yaml_values(arguments).items() if key != CHECKPOINTS)
    if form == "python":
        return "\n".join(f"{_RECIPE}{key} = {literal(value)}" for key, value in found.items())
    return " ".join(f"{key}={value}" for key, value in found.items())


def is_python(text: str) -> bool:
    """Whether lines are statements that change a recipe, or the configuration of a program."""
    return _STATEMENT.match(text) is not None


def as_words(text: str) -> str:
    """Statements as words of a command, which programs of ``run.cli.main`` take, and those that lay Hydra's overrides
    over a configuration."""
    pairs = (line.partition(".")[2].partition(" = ") for line in text.splitlines())
    nothing = "None" if text.startswith(_RECIPE) else "null"
    said = ((key, nothing if value == "None" else value.strip("'")) for key, _, value in pairs)
    return " ".join(f"{key}={value}" for key, value in said)


def _setting(key: str, value: str | bool | None) -> tuple[str, str | bool | None]:
    if key in _SHARDING:
        return "trainer.strategy.fsdp", _SHARDING[key] if value else None
    if key.startswith("recompute"):
        return f"model.config.{key}", value
    name = VIRTUAL_SIZE if is_of_stages(key) else key
    return f"{_SECTIONS.get(key, 'trainer.strategy')}.{name}", value
