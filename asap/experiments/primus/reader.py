"""An experiment of Primus: its YAML over presets of the backend that it trains with."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.files import is_file
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document, read_document
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.huggingface_model import read_named_model
from asap.experiments.maxtext.reader import read_maxtext
from asap.experiments.maxtext.settings import DEFAULTS, OVERRIDE, known_keys
from asap.experiments.megatron.bridge import check_is_decoder, left_to_recipe
from asap.experiments.megatron.reader import is_argument, read_megatron, read_words
from asap.experiments.torchtitan import reader as torchtitan
from asap.stacks.megatron.sections import BRIDGE, VIRTUAL, VIRTUAL_SIZE, precision_arguments, section_arguments
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
    if any(default is None for _, default in _defaults(value)):
        return None
    return _scalar(_VARIABLE.sub(lambda found: found[2], value))


def open_keys(values: dict[str, Any]) -> dict[str, str]:
    """Settings that a variable of the environment decides, by the text that says so; nested ones by dotted key."""
    found: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= {f"{key}.{inner}": text for inner, text in open_keys(value).items()}
        elif isinstance(value, str) and _VARIABLE.search(value):
            found[key] = value
    return found


def has_default(text: str) -> bool:
    """Whether every variable of a text has a default."""
    return all(default is not None for _, default in _defaults(text))


def _defaults(text: str) -> Iterator[tuple[str, str | None]]:
    return ((found[1], found[2]) for found in _VARIABLE.finditer(text))


def _scalar(text: str) -> Any:
    """A number or a truth value where the text is one."""
    if re.fullmatch(r"(?i)true|false|-?\d+|-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, re.ASCII):
        return parse_yaml(text.lower(), "variable")[0]
    return text


_ROOT = Path("primus") / "configs"
_DEEPEST = 8
_EXTENDS = "extends"
_BEFORE = ("bases", "includes")
"""What the same was called before: of several files the first has the say, and of ``extends`` the last."""


def find_presets(path: Path) -> Path | None:
    """The folder of presets beside or above a file; ``None`` if it lies outside of a copy of Primus."""
    folders = (folder / _ROOT for folder in path.absolute().parents)
    return next((folder for folder in folders if folder.is_dir()), None)


def read_preset(root: Path, kind: str, framework: str, name: str) -> dict[str, Any] | None:
    """The values of a preset; ``None`` if there is no such file.

    Args:
        root: the folder of presets.
        kind: ``models`` or ``modules``.
        framework: that it is for.
        name: of its file, with or without the suffix.

    Raises:
        ConfigError: it is malformed, or extends what lies outside of the presets, or too many.
    """
    path = root / kind / framework / name
    path = path if path.suffix in (".yaml", ".yml") else path.with_name(f"{path.name}.yaml")
    return _read(path, root, _DEEPEST) if _is_inside(path, root) and is_file(path) else None


def _read(path: Path, root: Path, deeper: int) -> dict[str, Any]:
    values = with_defaults(read_document(path).values)
    earlier = [name for key in _BEFORE for name in _names(values.pop(key, None))]
    below: dict[str, Any] = {}
    for name in (*reversed(earlier), *_names(values.pop(_EXTENDS, None))):
        place = path.parent / name
        if not deeper or not _is_inside(place, root) or not is_file(place):
            raise ConfigError(f"extends {plain(name, 60)}, which is not among the presets", where=str(path))
        below = merged(below, _read(place, root, deeper - 1))
    return merged(below, values)


def _names(said: object) -> list[str]:
    return [said] if isinstance(said, str) else [str(name) for name in said] if isinstance(said, list) else []


def _is_inside(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())


_PRECISION, _ADAPTER, _LENGTH = "precision_config", "peft", "seq_length"
_VERSION = re.compile(r"^([a-z]+\d)(\d)-")
_OF_STEP = re.compile(r"_degree$|_parallelism$|batch_size$|seq_len$|^mode$")
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "torchtitan": {"activation_checkpoint": {"mode": "none"}, "parallelism": {}},
    "maxtext": {"attention": "cudnn_flash_te", "remat_policy": "full", "weight_dtype": "bfloat16"},
}
"""Of the presets of other trainers, where they are not those of the backend."""

_Read = Callable[[dict[str, Any], Collection[str], Path, list[str], Experiment], Experiment]
"""Of all settings, those that the experiment says itself, its path, overrides, and what is known besides."""


def is_primus(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is an experiment of Primus."""
    modules = values.get("modules")
    return isinstance(modules, dict) and any(
        isinstance(each, dict) and "framework" in each for each in modules.values()
    )


def is_setting(values: Mapping[str, Any], key: str) -> bool:
    """Whether an override is a setting of the backend."""
    _, module = _trainer(values, "")
    kinds = {
        "megatron": is_argument,
        "torchtitan": torchtitan.is_setting,
        "maxtext": known_keys().__contains__,
        "megatron_bridge": lambda key: key in spec("primus").names["of_bridge"] or is_argument(key),
    }
    return kinds.get(str(module.get("framework")), str.isidentifier)(key)


def read_primus(values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what the module that trains says.

    Raises:
        ConfigError: it has no such module, another backend, a preset that is not there, or settings that its backend
            refuses.
        UsageError: an override is not ``key=value``.
    """
    name, module = _trainer(values, str(path))
    framework = str(module.get("framework"))
    read = _BACKENDS.get(framework)
    if read is None:
        reason = f"trains with {plain(framework, 40)}, which is not read"
        raise ConfigError(reason, where=str(path), hint=f"read are {', '.join(_BACKENDS)}")
    written = module.get("overrides") or {}
    if not isinstance(written, dict):
        raise ConfigError(f"overrides of {plain(name, 40)} must be a mapping", where=str(path))
    overrides = list(overrides)
    _refuse_open(written, overrides, str(path))
    said, experiment = _over_presets(module, framework, path, experiment, with_defaults(written))
    found = read(said, written, path, overrides, experiment)
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
    module: Mapping[str, Any], framework: str, path: Path, experiment: Experiment, said: dict[str, Any]
) -> tuple[dict[str, Any], Experiment]:
    """The settings over those of the presets, and the model where its preset is not there."""
    root, model = find_presets(path), str(module.get("model") or "")
    trainer = str(module.get("config") or "pre_trainer.yaml")
    if root is None:
        core, table = spec("megatron").defaults, spec("primus").defaults
        usual = {key: value for key, value in table.items() if key not in core} if framework == "megatron" else {}
        below = {**_DEFAULTS.get(framework, usual), **({"stage": "sft"} if trainer.startswith("sft") else {})}
        noted = experiment.knowing(_ALONE)
        if framework == "maxtext":
            return merged(below | {"model_name": _catalogued(model)}, said), noted
        known, notes = read_named_model(_catalogued(model))
        named = noted if noted.model else noted.model_copy(update={"model": known})
        return merged(below, said), named.model_copy(update={"notes": (*noted.notes, *notes)})
    presets = [read_preset(root, "modules", framework, trainer), read_preset(root, "models", framework, model)]
    for name, preset in zip((trainer, model), presets, strict=True):
        if preset is None:
            raise ConfigError(f"names the preset {plain(name, 60)}, which is not in {root}", where=str(path))
    below = merged(presets[0] or {}, presets[1] or {})
    return merged(below, said), experiment


def _catalogued(preset: str) -> str:
    """``llama3.1_8B.yaml``, ``llama31_8b.yaml`` → ``llama3.1-8b``."""
    name = preset.removesuffix(".yaml").removesuffix("-fp8").replace("_", "-").lower()
    return _VERSION.sub(r"\1.\2-", name)


def _refuse_open(written: dict[str, Any], overrides: Iterable[str], where: str) -> None:
    """Refuse a setting of the step whose variable has no default, as Primus does, unless an override says it."""
    given = {override.partition("=")[0].removeprefix("--").replace("-", "_") for override in overrides}
    for key, text in open_keys(written).items():
        if _decides(key) and not has_default(text) and key not in given:
            reason = f"{plain(key, 60)} is set by a variable without a default: {plain(text, 60)}"
            raise ConfigError(reason, where=where, hint=f"say it: {plain(key, 60)}=…")


def _notes_on(written: dict[str, Any]) -> tuple[str, ...]:
    """That variables of the environment decide."""
    decided = {key: text for key, text in open_keys(written).items() if _decides(key) and has_default(text)}
    taken = ", ".join(f"{key}={with_defaults(text)}" for key, text in decided.items())
    return (plain(f"set by variables of the environment, taken as their defaults: {taken}", 300),) if taken else ()


def _decides(key: str) -> bool:
    """Whether a step hangs on a setting, by the last part of its name."""
    name = key.rpartition(".")[2]
    return name in read_words() - {"max_position_embeddings"} or name in DEFAULTS or _OF_STEP.search(name) is not None


def _read_megatron(
    said: dict[str, Any], own: Collection[str], path: Path, overrides: list[str], experiment: Experiment
) -> Experiment:
    table = spec("primus")
    named = {table.renamed.get(key, key): value for key, value in said.items() if key not in table.names["own"]}
    settings = StackSettings({key: named[key] for key in named if key in read_words() or key in own}, str(path))
    kind = "lfm" if named.get("lfm_layer_types") else str(named.get("model_type") or "gpt")
    if kind != "gpt":
        reason = f"trains a model of the kind {plain(kind, 20)}; only decoders of attention and MLPs are read"
        raise ConfigError(reason, where=str(path))
    return read_megatron(settings, overrides, experiment, CORE)


def _read_torchtitan(
    said: dict[str, Any], own: Collection[str], path: Path, overrides: list[str], experiment: Experiment
) -> Experiment:
    del own
    return torchtitan.read_torchtitan(said, path, overrides, experiment)


def _read_maxtext(
    said: dict[str, Any], own: Collection[str], path: Path, overrides: list[str], experiment: Experiment
) -> Experiment:
    values = {key: value for key, value in said.items() if key not in {*spec("primus").names["own"], "base_config"}}
    given = [(override, OVERRIDE) for override in overrides]
    del own
    return read_maxtext(Document(path, values, {}), given, experiment)


def _read_bridge(
    said: dict[str, Any], own: Collection[str], path: Path, overrides: list[str], experiment: Experiment
) -> Experiment:
    """A recipe, whose parameters stand at the top; Primus drops what it has none for, and lays sections over what it
    makes (``primus/backends/megatron_bridge/config_utils.py``)."""
    given = {key: value for key, _, value in (override.partition("=") for override in overrides)}
    said = said | {key: value for key, value in given.items() if key in spec("primus").names["of_bridge"]}
    rest = [override for override in overrides if override.partition("=")[0] not in spec("primus").names["of_bridge"]]
    check_is_decoder(str(said.get("recipe") or said.get("flavor") or ""), str(path))
    _check_trains_all(said, str(path))
    parameters = {*spec("megatron-bridge").names["parameters"], _LENGTH}
    found = {key: said[key] for key in parameters if key in said} | section_arguments(dotted(said))
    found = {VIRTUAL if key == VIRTUAL_SIZE else key: value for key, value in found.items()}
    settings = StackSettings(found | precision_arguments(said.get(_PRECISION)), str(path))
    if experiment.model is None and said.get("hf_path"):
        model, notes = read_named_model(str(said["hf_path"]))
        experiment = experiment.knowing(*notes, model=model)
    read = read_megatron(settings, rest, experiment, BRIDGE, left_to_recipe(settings, experiment.model))
    dropped = sorted(key for key in own if key in read_words() - parameters and key not in given)
    note = f"{', '.join(dropped)}: recipes of Megatron-Bridge have no such parameter, and Primus drops it"
    return read.knowing(*([note] if dropped else []))


def _check_trains_all(said: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError where adapters are trained, as by a recipe of fine-tuning unless told otherwise."""
    adapter, flavor = said.get(_ADAPTER), str(said.get("flavor") or said.get("stage") or "")
    if adapter is None and ("finetune" in flavor or flavor == "sft"):
        reason = f"does not say {_ADAPTER}, and recipes that fine-tune train adapters by default"
        raise ConfigError(reason, where=where, hint=f"add {_ADAPTER}=none where all parameters are trained")
    if adapter is not None and str(adapter).casefold() not in ("none", "null", ""):
        reason = f"{_ADAPTER}={plain(str(adapter), 20)}: training a part of the parameters is not modelled"
        raise ConfigError(reason, where=where, hint="give a run that trains all of them")


_BACKENDS: Mapping[str, _Read] = {
    "megatron": _read_megatron,
    "torchtitan": _read_torchtitan,
    "maxtext": _read_maxtext,
    "megatron_bridge": _read_bridge,
}
_ALONE = (
    "the presets of Primus (primus/configs) are not above the file: the model is taken by its name, with usual defaults"
)
