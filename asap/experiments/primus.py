"""An experiment of Primus: its YAML over usual defaults of the backend that it trains with."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, UnreadError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.huggingface_model import read_named_model
from asap.experiments.maxtext import is_override, read_maxtext
from asap.experiments.tables import reader as tables
from asap.stacks.registry import FOLDER, merged, spec
from asap.stacks.stack_settings import dotted
from asap.stacks.writing import PRIMUS_MODULE

_VARIABLE = re.compile(r"\$\{([^:{}]+)(?::([^}]*))?\}")
_SCALAR = re.compile(r"(?i)true|false|-?\d+|-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII)
_VERSION = re.compile(r"^([a-z]+\d)(\d)-")
_PRESETS: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "primus/presets.toml").read_text(encoding="utf-8"))
"""Settings by the backend that trains, which are read."""
_MAXTEXT = "maxtext"
_ALONE = (
    "the presets of Primus (primus/configs) are not read: the model is taken by its name, with usual defaults, and what"
    " its preset has besides goes into overrides"
)


def add_defaults(value: Any) -> Any:
    """The value with the default of each variable; a text that needs one without default stays."""
    if isinstance(value, dict):
        return {key: add_defaults(item) for key, item in value.items()}
    if isinstance(value, list):
        return [add_defaults(item) for item in value]
    found = [*_VARIABLE.finditer(value)] if isinstance(value, str) else []
    if not found or any(one[2] is None for one in found):
        return value
    text = _VARIABLE.sub(lambda one: one[2], value)
    return parse_yaml(text.lower(), "variable")[0] if _SCALAR.fullmatch(text) else text


def is_primus(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is an experiment of Primus."""
    modules = values.get("modules")
    return isinstance(modules, dict) and any(
        isinstance(each, dict) and "framework" in each for each in modules.values()
    )


def is_setting(values: Mapping[str, Any], key: str) -> bool:
    """Whether an override is a setting of the backend."""
    framework = str(_trainer(values, "")[1].get("framework"))
    if framework == _MAXTEXT:
        return is_override(key)
    return tables.is_setting(spec(framework), values, key) if framework in _PRESETS else key.isidentifier()


def read_primus(values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what the module that trains says.

    Raises:
        ConfigError: it has no such module, another backend, or settings that its backend refuses.
        UsageError: an override is not ``key=value``.
    """
    name, module = _trainer(values, str(path))
    framework, written = str(module.get("framework")), module.get("overrides") or {}
    if framework not in _PRESETS:
        reason = f"trains with {plain(framework, 40)}, which is not read"
        raise UnreadError(reason, where=str(path), hint=f"read are {', '.join(_PRESETS)}")
    if not isinstance(written, dict):
        raise ConfigError(f"overrides of {plain(name, 40)} must be a mapping", where=str(path))
    table, preset = spec("primus"), str(module.get("model") or "").removesuffix(".yaml").removesuffix("-fp8")
    preset = _VERSION.sub(r"\1.\2-", preset.replace("_", "-").lower())  # llama31_8b.yaml → llama3.1-8b
    said = merged(_PRESETS[framework], add_defaults(written))
    said |= {"stage": "sft"} if str(module.get("config")).startswith("sft") else {}
    said = {key: value for key, value in said.items() if key not in table.names["own"]}
    experiment = experiment.knowing(_ALONE)
    if framework == _MAXTEXT:
        document = Document(path, {"model_name": preset.replace("deepseek-v", "deepseek"), **said}, {})
        found = read_maxtext(document, overrides, experiment)
    else:
        known, notes = read_named_model(preset)
        experiment = experiment if experiment.model else experiment.model_copy(update={"model": known})
        said = {table.renamed.get(key, key): value for key, value in said.items()}
        found = tables.read_table(spec(framework), said, path, overrides, experiment.knowing(*notes))
    found = found.knowing(hyperparameters={PRIMUS_MODULE: name})
    if found.model is not None and found.model.name is None and preset:
        found = found.model_copy(update={"model": found.model.model_copy(update={"name": plain(preset, 80)})})
    decided = {key: add_defaults(text) for key, text in dotted(written).items() if "${" in str(text)}
    decided = {key: one for key, one in decided.items() if key in spec(framework).words and "${" not in str(one)}
    taken = ", ".join(f"{key}={value}" for key, value in decided.items())
    note = plain(f"set by variables of the environment, taken as their defaults: {taken}", 300)
    return found.knowing(*([note] if taken else []))


def _trainer(values: Mapping[str, Any], where: str) -> tuple[str, dict[str, Any]]:
    modules, names = values["modules"], spec("primus").names["modules"]
    found = next((name for name in names if isinstance(modules.get(name), dict)), None)
    if found is None:
        raise ConfigError(f"has no module {' or '.join(names)}", where=where)
    return found, add_defaults(modules[found]) | {"overrides": modules[found].get("overrides")}
