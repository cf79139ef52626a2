"""torchtitan's configurations in Python (``models/*/config_registry.py``, ``torchtitan_recipes``): one of them."""

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.launch.literals import parse_python
from asap.experiments.torchtitan.reader import is_setting as is_titan_setting
from asap.experiments.torchtitan.reader import read_torchtitan
from asap.experiments.torchtitan.registry_values import ARGUMENTS, CLASS, UNKNOWN, configurations, returned
from asap.plans.torchtitan.python_lines import PYTHON
from asap.plans.torchtitan.token_batches import LENGTH, TOKENS

_SIGN = re.compile(r"->\s*Trainer\.Config\s*:")
_CHOSEN = "config="
_REGISTRY = "model_registry"
_COMPILE = "CompileConfig"
_MOST_NAMED = 12
_RECOMPUTATION = {"FullAC": {"mode": "full"}, "MemoryBudgetAC": {"mode": "memory_budget"}}
_SELECTIVE = {"mode": "selective", "selective_ac_option": "op"}
"""The default of ``Trainer.Config``."""
_DEFAULTS = {TOKENS.partition(".")[2]: 16_384, LENGTH.partition(".")[2]: 2048}
"""Of ``TrainingConfig`` (``torchtitan/config/configs.py``, August 2026)."""
_CONVERTERS = {"float8": "float8", "mxfp8": "mx", "nvfp4": "nvfp4"}


def is_registry(text: str) -> bool:
    """Whether a program defines configurations of torchtitan."""
    return _SIGN.search(text) is not None


def is_setting(key: str) -> bool:
    """Whether an override is the name of a configuration, or one of torchtitan's settings."""
    return f"{key}=" == _CHOSEN or is_titan_setting(key)


def read_registry(text: str, path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with the configuration that ``config=NAME`` names, or the only one.

    Raises:
        ConfigError: there is none of that name, it cannot be told without running it, or it is wrong.
        UsageError: an override is not ``section.key=value``.
    """
    tree = parse_python(text, str(path))
    functions = configurations(tree)
    overrides = list(overrides)
    names = [override.removeprefix(_CHOSEN) for override in overrides if override.startswith(_CHOSEN)]
    name = names[-1] if names else next(iter(functions)) if len(functions) == 1 else None
    if name not in functions:
        listed = f"{', '.join([*functions][:_MOST_NAMED])}{', …' if len(functions) > _MOST_NAMED else ''}"
        reason = f"has no configuration {plain(name, 60)}" if name else f"has {len(functions)} configurations"
        raise ConfigError(reason, where=str(path), hint=f"name one with {_CHOSEN}NAME: {listed}")
    try:
        found = returned(name, functions)
    except ConfigError as error:
        raise ConfigError(error.message, where=str(path)) from error
    values = _in_names_of_toml(found, _model_name(tree, path), path)
    rest = [override for override in overrides if not override.startswith(_CHOSEN)]
    read = read_torchtitan(values, path, rest, experiment)
    workload = read.workload
    if _compiled(found) is None and not any(override.startswith("compile.") for override in rest):
        workload = workload.model_copy(update={"compiled": None})
    return read.model_copy(update={"workload": workload, "hyperparameters": read.hyperparameters | {PYTHON: True}})


def _in_names_of_toml(config: Mapping[str, Any], model: str, path: Path) -> dict[str, Any]:
    training = _DEFAULTS | _literal(config, "training", path)
    recomputation = config.get("activation_checkpoint", _SELECTIVE)
    if recomputation is not _SELECTIVE:
        kind = recomputation.get(CLASS) if isinstance(recomputation, dict) else None
        recomputation = {"mode": "none"} if recomputation is None else _RECOMPUTATION.get(str(kind), _SELECTIVE)
    optimizer = config.get("optimizer")
    kind = str(optimizer.get(CLASS)).casefold() if isinstance(optimizer, dict) else ""
    return {
        "model": _model(config.get("model_spec"), model),
        "training": training,
        "parallelism": _literal(config, "parallelism", path),
        "activation_checkpoint": recomputation,
        "optimizer": {"name": "Muon" if "muon" in kind else "AdamW"},
        "compile": {"enable": _compiled(config)},
    }


def _compiled(config: Mapping[str, Any]) -> bool | None:
    """Whether the model is compiled, as the configuration says or by default; ``None`` where only a run can tell."""
    said = config.get("compile", {})
    if not isinstance(said, dict) or not said.get(CLASS, _COMPILE).endswith(_COMPILE):
        return None
    enabled = said.get("enable", False)
    return enabled if isinstance(enabled, bool) else None


def _literal(config: Mapping[str, Any], section: str, path: Path) -> dict[str, Any]:
    said = config.get(section, {})
    if not isinstance(said, dict):
        raise ConfigError(f"{section} cannot be told without running it", where=str(path))
    known = {key: value for key, value in said.items() if key not in (CLASS, ARGUMENTS)}
    if unknown := [key for key, value in known.items() if value is UNKNOWN or isinstance(value, dict)]:
        hint = f"say it: {section}.{unknown[0]}=…"
        raise ConfigError(f"{section}.{unknown[0]} cannot be told without running it", where=str(path), hint=hint)
    return known


def _model(spec: Any, name: str) -> dict[str, Any]:
    """Name, flavor and converters of ``model_registry("8B", converters=[…])``."""
    if not isinstance(spec, dict) or spec.get(CLASS) != _REGISTRY:
        return {}
    flavor = next(iter(spec.get(ARGUMENTS, ())), spec.get("flavor"))
    given = spec.get("converters")
    kinds = (
        [str(one.get(CLASS)).casefold() for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    )
    converters = [word for kind in kinds for start, word in _CONVERTERS.items() if kind.startswith(start)]
    if any("lora" in kind for kind in kinds):
        raise ConfigError(
            "trains adapters, which are not modelled", hint="name a configuration that trains all weights"
        )
    return {"name": name, "flavor": flavor if isinstance(flavor, str) else None, "converters": converters}


def _model_name(tree: ast.Module, path: Path) -> str:
    """Where ``model_registry`` is imported from: a package of torchtitan's models, or that of the file."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    found = next((node for node in imports if any(name.name == _REGISTRY for name in node.names)), None)
    if found is None or found.level or not found.module:
        return path.absolute().parent.name
    return found.module.rpartition(".")[2]
