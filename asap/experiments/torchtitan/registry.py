"""Commands that start torchtitan, with TOML or with one of its configurations in Python (config_registry.py)."""

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, UnreadError
from asap.core.numbers import parse_toml
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Brought, find_named, missing
from asap.experiments.files.python_literals import ARGUMENTS, CLASS, UNKNOWN, names_of, parse_python, value_of
from asap.experiments.processes import with_processes_of
from asap.experiments.shell import Command, Start, environment_of, has_substitution, options, words
from asap.experiments.torchtitan.reader import is_setting as is_titan_setting
from asap.experiments.torchtitan.reader import is_torchtitan, read_torchtitan
from asap.stacks.torchtitan.lines import PYTHON, WITH_MODES
from asap.stacks.torchtitan.stages import GLOBAL_BATCH, LENGTH, LOCAL_BATCH, SEQUENCE, TOKENS

_SIGN = re.compile(r"->\s*\w*Trainer\.?Config\s*:")
_OWN_SIGN = re.compile(r"->\s*\w*Trainer\.Config\s*:")
"""Other stacks have a ``TrainerConfig``, too."""
_RETURNS = re.compile(r"\w*Trainer\.?Config")
_CHOSEN, _OWN = "config=", "torchtitan"
_REGISTRY = "model_registry"
_TRAINER, _COMPILE, _CONFIGURATION, _STEPS = "Trainer", "CompileConfig", "Config", "steps"
_MODES = "ActivationCheckpointConfig"
"""The class of what is recomputed before each way had its own, in 2026; batches were counted in sequences then."""
_IN_SEQUENCES = (LOCAL_BATCH, GLOBAL_BATCH, SEQUENCE)
_MOST_NAMED = 12
_RECOMPUTATION = {"FullAC": {"mode": "full"}, "MemoryBudgetAC": {"mode": "memory_budget"}}
_SELECTIVE = {"mode": "selective", "selective_ac_option": "op"}
"""The default of ``Trainer.Config``."""
_DEFAULTS = {TOKENS.partition(".")[2]: 16_384, LENGTH.partition(".")[2]: 2048}
"""Of ``TrainingConfig`` (``torchtitan/config/configs.py``, August 2026)."""
_SAVED = "give the JSON that a run of it writes with --debug.save_config_file=FILE"
_CHUNKED, _CHUNKS = ("ChunkedLossWrapper", "ChunkedCELoss"), 8
"""Losses in parts, and how many by default (``torchtitan/components/loss.py``)."""
_CONVERTERS = {"float8": "float8", "mxfp8": "mx", "nvfp4": "nvfp4"}


def is_registry(text: str) -> bool:
    """Whether a program defines configurations of torchtitan."""
    return _SIGN.search(text) is not None and (_OWN in text or _OWN_SIGN.search(text) is not None)


def _configurations(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Functions that return a ``Trainer.Config`` and need no arguments, also one of another trainer; those for the
    file's own use last."""
    found = (node for node in tree.body if isinstance(node, ast.FunctionDef) and not _needs_arguments(node.args))
    returning = [node for node in found if node.returns and _RETURNS.fullmatch(ast.unparse(node.returns))]
    return {node.name: node for node in sorted(returning, key=lambda node: node.name.startswith("_"))}


def _needs_arguments(said: ast.arguments) -> bool:
    return len(said.posonlyargs + said.args) > len(said.defaults) or None in said.kw_defaults


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
    functions = _configurations(tree)
    overrides = list(overrides)
    names = [override.removeprefix(_CHOSEN) for override in overrides if override.startswith(_CHOSEN)]
    name = names[-1] if names else next(iter(functions)) if len(functions) == 1 else None
    if name not in functions:
        listed = f"{', '.join([*functions][:_MOST_NAMED])}{', …' if len(functions) > _MOST_NAMED else ''}"
        reason = f"has no configuration {plain(name, 60)}" if name else f"has {len(functions)} configurations"
        raise ConfigError(reason, where=str(path), hint=f"name one with {_CHOSEN}NAME: {listed}")
    found = _returned(functions[name], names_of(tree))
    if _TRAINER not in str(found.get(CLASS)):
        reason = f"{name} returns no literal {_TRAINER}.{_CONFIGURATION}(…)"
        raise UnreadError(reason, where=f"{path}:{functions[name].lineno}", hint=_SAVED)
    rest = [override for override in overrides if not override.startswith(_CHOSEN)]
    of_modes = _MODES in text
    in_sequences = of_modes or any(override.partition("=")[0] in _IN_SEQUENCES for override in rest)
    values = _in_names_of_toml(found, _model_name(tree, path), in_sequences, path)
    read = read_torchtitan(values, path, rest, experiment)
    workload = read.workload
    if _compiled(found) is None and not any(override.startswith("compile.") for override in rest):
        workload = workload.model_copy(update={"compiled": None})
    return read.knowing(workload=workload, hyperparameters={PYTHON: WITH_MODES if of_modes else True})


def _returned(function: ast.FunctionDef, names: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a function returns, where it only gives names to values before; nothing elsewhere."""
    known = dict(names)
    for statement in function.body:
        match statement:
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                known[name] = value_of(value, known)
            case ast.Return(value=ast.expr() as value):
                found = value_of(value, known)
                return found if isinstance(found, dict) else {}
            case _:
                return {}
    return {}


def _in_names_of_toml(config: Mapping[str, Any], model: str, in_sequences: bool, path: Path) -> dict[str, Any]:
    training = _literal(config, "training", path)
    if not in_sequences and not any(f"training.{key}" in _IN_SEQUENCES for key in training):
        training = _DEFAULTS | training
    optimizer = config.get("optimizer")
    kind = str(optimizer.get(CLASS)).casefold() if isinstance(optimizer, dict) else ""
    return {
        "model": _model(config.get("model_spec"), config.get("model_converters"), model, path),
        "training": training,
        "parallelism": _literal(config, "parallelism", path),
        "activation_checkpoint": _recomputation(config, path),
        "optimizer": {"name": "Muon" if "muon" in kind else "AdamW"},
        "compile": {"enable": _compiled(config), **_components(config)},
        "loss": _loss(config),
    }


def _recomputation(config: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """What is recomputed: a class, nothing, or until 2026 a mode."""
    said = config.get("activation_checkpoint", {})
    if said is None:
        return {"mode": "none"}
    kind = str(said.get(CLASS, "")) if isinstance(said, dict) else "a choice"
    if kind in _RECOMPUTATION:
        return _RECOMPUTATION[kind]
    if kind.endswith(_MODES):
        return _SELECTIVE | _literal(config, "activation_checkpoint", path)
    if kind not in ("", "SelectiveAC"):
        raise UnreadError(
            "activation_checkpoint cannot be told without running it",
            where=str(path),
            hint=_SAVED,
        )
    return _SELECTIVE


def _loss(config: Mapping[str, Any]) -> dict[str, Any]:
    """In how many parts the loss is taken, where the configuration says it literally."""
    said = config.get("loss")
    if not isinstance(said, dict) or not str(said.get(CLASS)).startswith(_CHUNKED):
        return {}
    chunks = said.get("num_chunks", _CHUNKS)
    return {"num_chunks": chunks} if isinstance(chunks, int) else {}


def _compiled(config: Mapping[str, Any]) -> bool | None:
    """Whether the model is compiled, as the configuration says or by default; ``None`` where only a run can tell."""
    said = config.get("compile", {})
    if not isinstance(said, dict) or not said.get(CLASS, _COMPILE).endswith(_COMPILE):
        return None
    enabled = said.get("enable", False)
    return enabled if isinstance(enabled, bool) else None


def _components(config: Mapping[str, Any]) -> dict[str, Any]:
    """What is compiled, where the configuration says it literally."""
    said = config.get("compile")
    parts = said.get("components") if isinstance(said, dict) else None
    return {"components": parts} if isinstance(parts, list) and all(isinstance(part, str) for part in parts) else {}


def _literal(config: Mapping[str, Any], section: str, path: Path) -> dict[str, Any]:
    said = config.get(section, {})
    if not isinstance(said, dict) or not str(said.get(CLASS, _CONFIGURATION)).endswith(_CONFIGURATION):
        raise UnreadError(f"{section} cannot be told without running it", where=str(path), hint=_SAVED)
    known = {key: value for key, value in said.items() if key not in (CLASS, ARGUMENTS, _STEPS)}
    if unknown := [key for key, value in known.items() if value is UNKNOWN or isinstance(value, dict)]:
        hint = f"say it: {section}.{unknown[0]}=…"
        raise UnreadError(f"{section}.{unknown[0]} cannot be told without running it", where=str(path), hint=hint)
    return known


def _model(spec: Any, container: Any, package: str, path: Path) -> dict[str, Any]:
    """Name, flavor and converters of ``model_registry("8B", converters=[…])``; until 2026 with a container of them."""
    said = spec if isinstance(spec, dict) and spec.get(CLASS) == _REGISTRY else {}
    flavor = next(iter(said.get(ARGUMENTS, ())), said.get("flavor"))
    given = said.get("converters", container.get("converters") if isinstance(container, dict) else container)
    made = given if isinstance(given, list) else [] if given is None else [given]
    if not all(isinstance(one, dict) for one in made):
        raise UnreadError("the model's converters cannot be told without running it", where=str(path), hint=_SAVED)
    kinds = [str(one.get(CLASS)).casefold() for one in made]
    converters = [word for kind in kinds for start, word in _CONVERTERS.items() if kind.startswith(start)]
    if any("lora" in kind for kind in kinds):
        hint = "name a configuration that trains all weights"
        raise ConfigError("trains adapters, which are not modelled", where=str(path), hint=hint)
    words = {"flavor": flavor, "attn_backend": said.get("attn_backend")}
    known = {key: word if isinstance(word, str) else None for key, word in words.items()}
    named = {"name": package, **known} if said else {}
    return {**named, "converters": converters}


def _model_name(tree: ast.Module, path: Path) -> str:
    """Where ``model_registry`` is imported from: a package of torchtitan's models, or that of the file."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    found = next((node for node in imports if any(name.name == _REGISTRY for name in node.names)), None)
    if found is None or found.level or not found.module:
        return path.absolute().parent.name
    return found.module.rpartition(".")[2]


_START = re.compile(
    r"\btorchtitan[./]train(?:\.py)?(?=\s|$)|(?<=[\s/])run_(?:llama_)?train\.sh\b|"
    r"(?:\.py|-m\s+[\w.]+)\s(?:[\s\S]*\s)?--job\.config[_-]file\b"
)
_OPTION = re.compile(r"--([a-z_]+\.[\w.]+)(?:[=\s]+([^\s-][^\s]*))?")
_CONFIG = ("job.config_file", "job.config-file")
_VARIABLE = "CONFIG_FILE"
_OTHERS = (".py", ".json", ".yaml", ".yml")
_REGISTRIES = ("torchtitan/models", "torchtitan/experiments")
_FILE_OF_REGISTRY = "config_registry.py"
_NO_MATTER = re.compile(r"seed|^job\.|folder|path|\.lr$|steps|^metrics\.|dataset|^optimizer\.(?!name)", re.ASCII)
"""Settings that decide neither what a step computes nor how it is laid out."""


def starts(command: Command) -> bool:
    """Whether a command starts torchtitan with a TOML file or a configuration in Python."""
    started = _START.search(f" {command.text}") is not None
    return started and (_file_of(command) is not None or _configuration_of(command) is not None)


def read_titan_script(start: Start, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with the configuration that a script names, and the settings of its command.

    Raises:
        ConfigError: the file is not there, or wrong, or a variable that is not known decides a setting.
        UsageError: an override is not ``section.key=value``.
    """
    command, path = start.command, start.path
    experiment = with_processes_of(start, experiment)
    if (named := _file_of(command)) is None:
        return _read_registry(command, path, overrides, experiment, start.files)
    start.check_made(named)
    found = None if has_substitution(named) else find_named(named, path, start.files)
    if found is None:
        raise missing("starts torchtitan with", named, path, "lay it beside the file, or give it as --config")
    if found.path.suffix in _OTHERS:
        reason = f"starts torchtitan with {plain(named, 80)}, a fork's own kind of configuration, which is not read"
        raise ConfigError(reason, where=str(path), hint="give the settings as a TOML file of torchtitan")
    values = parse_toml(found.text, str(found.path))
    if not is_torchtitan(values):
        raise ConfigError("is not a torchtitan configuration", where=str(found.path))
    return read_torchtitan(values, found.path, _settings(command, path, overrides), experiment)


def _read_registry(
    start: Command, path: Path, overrides: Iterable[str], experiment: Experiment, files: Brought
) -> Experiment:
    """With the configuration in Python that a command names."""
    module, name = _configuration_of(start) or ("", "")
    below = module.replace(".", "/")
    places = (f"{folder}/{below}/{_FILE_OF_REGISTRY}" for folder in _REGISTRIES)
    known = not has_substitution(f"{module}{name}")
    found = next(filter(None, (find_named(place, path, files) for place in places)), None) if known else None
    if found is None:
        reason = (
            f"starts torchtitan with {plain(name, 60)} of {plain(module, 60)}, whose {_FILE_OF_REGISTRY} is not there"
        )
        raise ConfigError(reason, where=str(path), hint=f"give that file as --config, with config={plain(name, 60)}")
    given = [f"config={name}", *_settings(start, path, overrides)]
    return read_registry(found.text, found.path, given, experiment)


def _settings(start: Command, path: Path, overrides: Iterable[str]) -> list[str]:
    """Settings of a command with those of the user on top; raises ConfigError where a variable decides one."""
    given = [*overrides]
    said = {key: value or "true" for key, value in _OPTION.findall(start.text) if key not in _CONFIG}
    overridden = {override.partition("=")[0] for override in given}
    known = {key: value for key, value in said.items() if is_titan_setting(key) and key not in overridden}
    unknown = sorted(key for key, value in known.items() if has_substitution(value))
    if decisive := [key for key in unknown if not _NO_MATTER.search(key)]:
        reason = f"sets {', '.join(decisive)} by a variable whose value is not said"
        raise ConfigError(reason, where=str(path), hint=f"add {decisive[0]}=…")
    return [*(f"{key}={value}" for key, value in known.items() if key not in unknown), *given]


def _file_of(command: Command) -> str | None:
    """The TOML file that a command takes; ``None`` where it names none."""
    said = dict(_OPTION.findall(command.text))
    given = next((said[key] for key in _CONFIG if key in said), None) or command.scope.environment().get(_VARIABLE)
    on_the_line = (word.partition("=")[2] for word in words(command.text) if word.startswith(f"{_VARIABLE}="))
    found = next(on_the_line, None) or given
    return found.strip("\"'") if found else None


def _configuration_of(command: Command) -> tuple[str, str] | None:
    """Module and name of the configuration in Python that a command takes; ``None`` where it names none."""
    said = {option.name: option.words[0] for option in options(command.text) if option.words}
    around = environment_of(command)
    module, name = (said.get(key) or around.get(key.upper()) for key in ("module", "config"))
    return (module.strip("\"'"), name.strip("\"'")) if module and name else None
