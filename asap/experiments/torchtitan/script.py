"""Commands that start torchtitan with a TOML file; what stands in Python has to be run, and is refused."""

import re
from collections.abc import Iterable
from pathlib import Path

from asap.core.errors import ConfigError, UnreadError
from asap.core.numbers import parse_toml
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import find_named, missing
from asap.experiments.processes import with_processes_of
from asap.experiments.shell import Command, Start, environment_of, has_substitution, options, words
from asap.experiments.torchtitan.reader import is_setting as is_titan_setting
from asap.experiments.torchtitan.reader import is_torchtitan, read_torchtitan

_START = re.compile(
    r"\btorchtitan[./]train(?:\.py)?(?=\s|$)|(?<=[\s/])run_(?:llama_)?train\.sh\b|"
    r"(?:\.py|-m\s+[\w.]+)\s(?:[\s\S]*\s)?--job\.config[_-]file\b"
)
_OPTION = re.compile(r"--([a-z_]+\.[\w.]+)(?:[=\s]+([^\s-][^\s]*))?")
_CONFIG = ("job.config_file", "job.config-file")
_VARIABLE = "CONFIG_FILE"
_OTHERS = (".py", ".json", ".yaml", ".yml")
_SAVED = "give the JSON that a run of it writes with --debug.save_config_file=FILE"
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
        module, name = _configuration_of(command) or ("", "")
        reason = f"starts torchtitan with {plain(name, 60)} of {plain(module, 60)}, which is Python and not read"
        raise UnreadError(reason, where=str(path), hint=_SAVED)
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
