"""YAML that is laid over a recipe of Megatron-Bridge and names it: ``recipe: {_target_:
megatron.bridge.recipes.llama.llama3.llama3_8b_pretrain_config}``."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.experiments.experiment import Experiment
from asap.experiments.files.python_literals import CLASS, UNKNOWN
from asap.experiments.megatron.bridge.recipe import read_recipe
from asap.experiments.megatron.hydra import laid_over

_RECIPE, _TARGET = "recipe", "_target_"
_OF_BRIDGE = "megatron.bridge.recipes"
_REFERENCE = "${"


def is_recipe_file(values: Mapping[str, Any]) -> bool:
    """Whether a mapping names a recipe of Megatron-Bridge that it is laid over."""
    recipe = values.get(_RECIPE)
    return isinstance(recipe, dict) and _OF_BRIDGE in str(recipe.get(_TARGET))


def read_recipe_file(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with the recipe and what is laid over it; raises like
    :func:`asap.experiments.megatron.bridge.recipe.read_recipe`."""
    values, rest = laid_over(values, overrides)
    recipe = values[_RECIPE]
    sections = {key: _known(value) for key, value in values.items() if isinstance(value, dict) and key != _RECIPE}
    given = {key: _known(value) for key, value in recipe.items() if key != _TARGET}
    peft = {"peft": _known(values["peft"])} if "peft" in values else {}
    said = {**given, **sections, **peft, CLASS: str(recipe[_TARGET]).rpartition(".")[2]}
    return read_recipe(said, path, rest, experiment)


def _known(value: Any) -> Any:
    """A value, ``UNKNOWN`` where it refers to another one."""
    if isinstance(value, dict):
        return {key: _known(item) for key, item in value.items()}
    return UNKNOWN if isinstance(value, str) and _REFERENCE in value else value
