"""Launch scripts: the configuration and the ``key=value`` overrides of a MaxText command, read without running it.

An override that still holds a variable or a substitution is left out, and named. Launchers around the command (xpk)
say the hardware.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile

from asap.experiments.maxtext.settings import TABLE
from asap.experiments.shell import Command, has_substitution, options, starts_in, words
from asap.flags.environment import is_performance_variable

_TRAINS = re.compile(TABLE.command.program if TABLE.command else "")
_OVERRIDE = re.compile(r"[A-Za-z_]\w*=")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)(?:\[@\])?\}?$", re.ASCII)
_SHELL_OPERATORS = frozenset(";&|<>()")
_HARDWARE = ("tpu_type", "device_type")
_SLICES = ("num_slices", "num_nodes")
_ENVIRONMENT = "M_"
_LONGEST_COMMAND = 300


@dataclass(frozen=True)
class Launch:
    """One start of MaxText."""

    config: str | None
    overrides: tuple[str, ...]
    line: int
    hardware: str | None = None
    slices: int | None = None
    unknown: tuple[str, ...] = ()
    """Keys whose value is not said."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that hold flags of a compiler or runtime, or are one."""


def starts(command: Command) -> bool:
    """Whether a command starts MaxText."""
    return "maxtext" in command.text.casefold() and _program(words(command.text)) is not None


def read_launch(script: str) -> Launch | None:
    """The first MaxText command of a script; ``None`` if it has none."""
    return next((launch_of(outer, command) for _, outer, command in starts_in(script, starts)), None)


def launch_of(outer: Command, command: Command) -> Launch:
    """A command that starts MaxText, itself or in quotes of an outer one (``--command="… && python3 …"``)."""
    said = words(command.text)
    start = _program(said) or 0
    arguments = [*takewhile(lambda word: not set(word) <= _SHELL_OPERATORS, said[start + 1 :])]
    config = next((word for word in arguments if word.endswith((".yml", ".yaml")) and "=" not in word), None)
    on_the_line = (word.partition("=") for word in said[:start] if _OVERRIDE.match(word))  # XLA_FLAGS=… python3 …
    environment = {**command.scope.environment(), **{name: value for name, _, value in on_the_line}}
    environment = {name: _closed(value) for name, value in environment.items()}
    given = [word for word in arguments if _OVERRIDE.match(word)]
    keys = {word.partition("=")[0] for word in given}
    given += [f"{key}={value}" for key, value in _settings_of(environment) if key not in keys]
    around = {option.name: option.words[0] for option in options(outer.text) if option.words}
    slices = next((around[key] for key in _SLICES if key in around), "")
    return Launch(
        config=None if config and has_substitution(config) else config,
        overrides=tuple(word for word in given if not has_substitution(word)),
        line=outer.line if command is outer else outer.line + command.line - 1,
        hardware=next((around[key] for key in _HARDWARE if not has_substitution(around.get(key, "$"))), None),
        slices=int(slices) if re.fullmatch(r"[1-9]\d{0,4}", slices, re.ASCII) else None,
        unknown=(*_open_keys(given), *_open_arguments(arguments, command)),
        environment={name: value for name, value in environment.items() if value and is_performance_variable(name)},
    )


def _program(said: list[str]) -> int | None:
    """Which of its words is MaxText's program."""
    return next((i for i, word in enumerate(said) if len(word) <= _LONGEST_COMMAND and _TRAINS.search(word)), None)


def _open_keys(given: list[str]) -> list[str]:
    return [word.partition("=")[0] for word in given if has_substitution(word)]


def _open_arguments(arguments: list[str], command: Command) -> list[str]:
    """Arguments that are a variable which the script sets, to something that only a run can tell."""
    found = (_VARIABLE.match(word) for word in arguments)
    return [f"${name[1]}" for name in found if name and name[1] in command.scope.variables]


def _closed(value: str) -> str:
    return " ".join(word for word in value.split() if not has_substitution(word))


def _settings_of(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Settings that MaxText takes from variables called ``M_<KEY>``."""
    taken = ((name.removeprefix(_ENVIRONMENT), value) for name, value in environment.items() if name.startswith("M_"))
    return [(key.lower(), value) for key, value in taken if key.isupper()]
