"""The configuration that a Python program of Megatron-Bridge trains, as far as it is literal: parsed, never run.

``pretrain(config=…)`` and ``finetune(config=…)`` (``megatron/bridge/training``), or in a file of recipes the function
that returns a ``ConfigContainer``.
"""

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.files.named_file import NamedFile
from asap.experiments.launch.python.calls import Program
from asap.experiments.launch.python.literals import parse_python
from asap.experiments.launch.python.objects import ARGUMENTS, CHANGED, CLASS
from asap.experiments.launch.python.values import returned, value_of
from asap.experiments.megatron.bridge.aliases import recipe_aliases

CONTAINER = "ConfigContainer"
CHOSEN = "recipe="
SECTIONS = ("model", "train", "ddp", "dist", "optimizer", "dataset", "tokenizer", "mixed_precision")
_IMPORTS = re.compile(r"^[ \t]*(?:from|import) megatron\.bridge\b", re.MULTILINE)
_SIGNS = re.compile(r"_config\(|\b(?:pretrain|finetune)\(|_config as \w+_config\b")
_RUNS = re.compile(r"(?:^|\.)(?:pretrain|finetune)$")
_HANDING_ON = ("run.Partial", "partial", "functools.partial", "get_partial_fn")
_CONFIG = ("config", "cfg")
VARIABLE, FUNCTION, TAKEN = "variable", "function", "taken"
"""Beside the sections: what a program calls its configuration, the recipe of the file that returns it, and defaults of
its command line and environment that it takes."""
_RECIPE = re.compile(r"(?:^|\.)_?(?:\w+_)?(?:pretrain|finetune|sft|peft|lora|dora)(?:_\w+)?$|_config$")
_RECIPES = "megatron.bridge"
_UNNAMED = ("pretrain_config", "finetune_config")
_MOST_NAMED = 6
_DEEPEST_ALIAS = 4
_HINT = "give run_config.yaml, which a run of it writes into its checkpoint"


def is_bridge_program(text: str) -> bool:
    """Whether a program is of Megatron-Bridge, and trains or has recipes."""
    return _IMPORTS.search(text) is not None and (CONTAINER in text or _SIGNS.search(text) is not None)


def trained_configuration(text: str, path: Path, chosen: str | None, depth: int = 0) -> dict[str, Any]:
    """The configuration that a program trains, by section; what made it stands under ``CLASS``.

    Args:
        text: of the program.
        path: its file.
        chosen: the function that returns the configuration, or another name of it, where a user names one.
        depth: how many names led here.

    Raises:
        ConfigError: it is no Python, has several recipes, or only a run can tell.
    """
    program = Program(parse_python(text, str(path)))
    if chosen is None:
        for site in program.sites(_runs):
            found = _config_of(value_of(site.call, site.names, program.functions))
            if found is not None:
                taken = {TAKEN: program.functions.taken}
                return {VARIABLE: _variable(site.call), **taken, **_as_imported(found, program.tree)}
            raise ConfigError("trains what cannot be told without running it", where=str(path), hint=_HINT)
    recipes = [name for name, node in program.functions.items() if _returns_configuration(node)]
    aliases = recipe_aliases(program.tree)
    public = [name for name in recipes if not name.startswith("_")] or recipes or [*aliases]
    name = chosen or (public[0] if len(public) == 1 else None)
    if name not in recipes and name in aliases and depth < _DEEPEST_ALIAS:
        alias = aliases[name]
        file = NamedFile(path, text) if alias.module is None else alias.file(path)
        return trained_configuration(file.text, file.path, alias.recipe, depth + 1)
    if name not in recipes:
        listed = f"{', '.join(public[:_MOST_NAMED])}{', …' if len(public) > _MOST_NAMED else ''}"
        reason = f"has no recipe {plain(name, 60)}" if name else f"has {len(public)} recipes"
        reason = reason if public else "has neither pretrain(config=…) nor a recipe that returns a ConfigContainer"
        hint = f"name one with {CHOSEN}NAME: {plain(listed, 300)}" if public else _HINT
        raise ConfigError(reason, where=str(path), hint=hint)
    try:
        found = _as_imported(unwrapped(returned(name, program.functions)), program.tree)
    except ConfigError as error:
        raise ConfigError(error.message, where=str(path), hint=_HINT) from error
    made_by = name if found.get(CLASS) == CONTAINER and "model" not in found else found.get(CLASS)
    return {**found, CLASS: made_by, FUNCTION: name, TAKEN: program.functions.taken}


def _as_imported(found: dict[str, Any], tree: ast.Module) -> dict[str, Any]:
    """A configuration with the recipe's own name: as its module has it, or that of its module until version 0.1
    (``from megatron.bridge.recipes.llama.llama3_8b import pretrain_config``)."""
    called = str(found.get(CLASS))
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(_RECIPES):
            continue
        name = next((alias.name for alias in node.names if called in (alias.asname, alias.name)), None)
        if name is not None:
            module = str(node.module).rpartition(".")[2]
            return {**found, CLASS: f"{module}.{name}" if name in _UNNAMED else name}
    return found


def _variable(call: ast.Call) -> str:
    """What a program calls its configuration."""
    given = [word.value for word in call.keywords if word.arg in _CONFIG] or call.args
    return next((node.id for node in given if isinstance(node, ast.Name)), _CONFIG[1])


def _runs(call: ast.Call) -> bool:
    """Whether a call trains, also one that is made and handed on."""
    called = ast.unparse(call.func)
    if called in _HANDING_ON and call.args:
        called = ast.unparse(call.args[0])
    return _RUNS.search(called) is not None and (bool(call.args) or any(w.arg in _CONFIG for w in call.keywords))


def _config_of(call: Any) -> dict[str, Any] | None:
    """The configuration among the arguments of a call."""
    if not isinstance(call, dict):
        return None
    given = (*(call[key] for key in _CONFIG if key in call), *call.get(ARGUMENTS, ())[:2])
    found = (unwrapped(place) for place in given if isinstance(place, dict))
    return next((place for place in found if is_configuration(place)), None)


def is_configuration(made: Mapping[str, Any]) -> bool:
    """Whether something is a configuration, or what a recipe returns."""
    made_by = str(made.get(CLASS, ""))
    return made_by.rpartition(".")[2] == CONTAINER or _RECIPE.search(made_by) is not None


def recipe_of(made: Mapping[str, Any]) -> str:
    """The recipe that made a configuration: ``qwen3_8b_pretrain_config``; of version 0.1 with its module,
    ``qwen3_8b.pretrain_config``."""
    *modules, name = str(made.get(CLASS, "")).split(".")
    return f"{modules[-1]}.{name}" if modules and name in _UNNAMED else name


def unwrapped(made: dict[str, Any]) -> dict[str, Any]:
    """The configuration that a function of another file was handed and gives back: ``cfg = overridden(cfg, args)``."""
    first = next(iter(made.get(ARGUMENTS, ())), None)
    if not (isinstance(first, dict) and is_configuration(first)):
        return made
    own = {key: value for key, value in made.items() if key not in (CLASS, ARGUMENTS)}
    return {**unwrapped(first), **own, CHANGED: str(made[CLASS])}


def _returns_configuration(function: ast.FunctionDef) -> bool:
    return function.returns is not None and CONTAINER in ast.unparse(function.returns)
