"""An experiment of Primus: its YAML over usual defaults of the backend that it trains with."""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, UnreadError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.huggingface_model import read_named_model
from asap.experiments.megatron.reader import is_argument, read_megatron, read_words
from asap.experiments.tables import reader as tables
from asap.stacks.megatron.workload import CORE
from asap.stacks.registry import merged, spec
from asap.stacks.stack_settings import StackSettings, dotted
from asap.stacks.writing import PRIMUS_MODULE

_VARIABLE = re.compile(r"\$\{([^:{}]+)(?::([^}]*))?\}")


def with_defaults(value: Any) -> Any:
    """The value with the default of each variable; ``None`` in the place of a text that needs one without default."""
    if isinstance(value, dict):
        return {key: with_defaults(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_defaults(item) for item in value]
    if not isinstance(value, str) or not _VARIABLE.search(value):
        return value
    if any(found[2] is None for found in _VARIABLE.finditer(value)):
        return None
    return _scalar(_VARIABLE.sub(lambda found: found[2], value))


def _open_keys(values: Mapping[str, Any]) -> dict[str, str]:
    """Settings that a variable of the environment decides and a step hangs on, by dotted key, and the text that says
    so."""
    texts = {key: value for key, value in dotted(values).items() if isinstance(value, str) and _VARIABLE.search(value)}
    return {key: text for key, text in texts.items() if _decides(key)}


def _scalar(text: str) -> Any:
    """A number or a truth value where the text is one."""
    if re.fullmatch(r"(?i)true|false|-?\d+|-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, re.ASCII):
        return parse_yaml(text.lower(), "variable")[0]
    return text


_VERSION = re.compile(r"^([a-z]+\d)(\d)-")
_OF_STEP = re.compile(r"_degree$|_parallelism$|batch_size$|seq_len$|^mode$")
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "torchtitan": {"activation_checkpoint": {"mode": "none"}, "parallelism": {}},
}
"""Of the presets of another trainer, where they are not those of the backend."""


def is_primus(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is an experiment of Primus."""
    modules = values.get("modules")
    return isinstance(modules, dict) and any(
        isinstance(each, dict) and "framework" in each for each in modules.values()
    )


def is_setting(values: Mapping[str, Any], key: str) -> bool:
    """Whether an override is a setting of the backend."""
    _, module = _trainer(values, "")
    kinds = {"megatron": is_argument, "torchtitan": partial(tables.is_setting, spec("torchtitan"), values)}
    return kinds.get(str(module.get("framework")), str.isidentifier)(key)


def read_primus(values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what the module that trains says.

    Raises:
        ConfigError: it has no such module, another backend, or settings that its backend refuses.
        UsageError: an override is not ``key=value``.
    """
    name, module = _trainer(values, str(path))
    framework = str(module.get("framework"))
    if framework not in _BACKENDS:
        reason = f"trains with {plain(framework, 40)}, which is not read"
        raise UnreadError(reason, where=str(path), hint=f"read are {' and '.join(_BACKENDS)}; give the log of the run")
    written = module.get("overrides") or {}
    if not isinstance(written, dict):
        raise ConfigError(f"overrides of {plain(name, 40)} must be a mapping", where=str(path))
    overrides = list(overrides)
    _refuse_open(written, overrides, str(path))
    said, experiment = _over_presets(module, framework, experiment, with_defaults(written))
    read = (
        partial(tables.read_table, spec("torchtitan"))
        if framework == "torchtitan"
        else partial(_read_megatron, written)
    )
    found = read(said, path, overrides, experiment)
    found = found.model_copy(update={"hyperparameters": found.hyperparameters | {PRIMUS_MODULE: name}})
    if found.model is not None and found.model.name is None and (preset := str(module.get("model") or "")):
        known = found.model.model_copy(update={"name": plain(_catalogued(preset), 80)})
        found = found.model_copy(update={"model": known})
    return found.knowing(*_notes_on(written))


def _trainer(values: Mapping[str, Any], where: str) -> tuple[str, dict[str, Any]]:
    modules = values["modules"]
    found = next((name for name in spec("primus").names["modules"] if isinstance(modules.get(name), dict)), None)
    if found is None:
        raise ConfigError(f"has no module {' or '.join(spec('primus').names['modules'])}", where=where)
    return found, with_defaults({key: value for key, value in modules[found].items() if key != "overrides"}) | {
        "overrides": modules[found].get("overrides")
    }


def _over_presets(
    module: Mapping[str, Any], framework: str, experiment: Experiment, said: dict[str, Any]
) -> tuple[dict[str, Any], Experiment]:
    """The settings over the usual ones of presets, and the model that is called as its preset."""
    model, trainer = str(module.get("model") or ""), str(module.get("config") or "pre_trainer.yaml")
    core, table = spec("megatron").defaults, spec("primus").defaults
    usual = {key: value for key, value in table.items() if key not in core}
    below = {**_DEFAULTS.get(framework, usual), **({"stage": "sft"} if trainer.startswith("sft") else {})}
    known, notes = read_named_model(_catalogued(model))
    named = experiment if experiment.model else experiment.model_copy(update={"model": known})
    return merged(below, said), named.knowing(_ALONE, *notes)


def _catalogued(preset: str) -> str:
    """``llama3.1_8B.yaml``, ``llama31_8b.yaml`` → ``llama3.1-8b``."""
    name = preset.removesuffix(".yaml").removesuffix("-fp8").replace("_", "-").lower()
    return _VERSION.sub(r"\1.\2-", name)


def _refuse_open(written: dict[str, Any], overrides: Iterable[str], where: str) -> None:
    """Refuse a setting of the step whose variable has no default, as Primus does, unless an override says it."""
    given = {override.partition("=")[0].removeprefix("--").replace("-", "_") for override in overrides}
    for key, text in _open_keys(written).items():
        if with_defaults(text) is None and key not in given:
            reason = f"{plain(key, 60)} is set by a variable without a default: {plain(text, 60)}"
            raise ConfigError(reason, where=where, hint=f"say it: {plain(key, 60)}=…")


def _notes_on(written: dict[str, Any]) -> tuple[str, ...]:
    """That variables of the environment decide."""
    decided = {key: with_defaults(text) for key, text in _open_keys(written).items()}
    taken = ", ".join(f"{key}={value}" for key, value in decided.items() if value is not None)
    return (plain(f"set by variables of the environment, taken as their defaults: {taken}", 300),) if taken else ()


def _decides(key: str) -> bool:
    """Whether a step hangs on a setting, by the last part of its name."""
    name = key.rpartition(".")[2]
    return name in read_words() - {"max_position_embeddings"} or _OF_STEP.search(name) is not None


def _read_megatron(
    own: Collection[str], said: Mapping[str, Any], path: Path, overrides: list[str], experiment: Experiment
) -> Experiment:
    table = spec("primus")
    named = {table.renamed.get(key, key): value for key, value in said.items() if key not in table.names["own"]}
    settings = StackSettings({key: named[key] for key in named if key in read_words() or key in own}, str(path))
    kind = "lfm" if named.get("lfm_layer_types") else str(named.get("model_type") or "gpt")
    if kind != "gpt":
        reason = f"trains a model of the kind {plain(kind, 20)}; only decoders of attention and MLPs are read"
        raise ConfigError(reason, where=str(path))
    return read_megatron(settings, overrides, experiment, CORE)


_BACKENDS = ("megatron", "torchtitan")
_ALONE = (
    "the presets of Primus (primus/configs) are not read: the model is taken by its name, with usual defaults, and what"
    " its preset has besides goes into overrides"
)
