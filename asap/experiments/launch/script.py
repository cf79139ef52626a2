"""Launch scripts: the configuration and the ``key=value`` overrides of a MaxText command, read without running it.

An override that still holds a variable or a substitution is left out, and named. Launchers around the command (xpk)
say the hardware.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from asap.experiments.maxtext.settings import TABLE
from asap.experiments.shell import Command, has_substitution, read_commands, words
from asap.flags.environment import is_performance_variable

_TRAINS = re.compile(TABLE.command.program if TABLE.command else "")
_OVERRIDE = re.compile(r"[A-Za-z_]\w*=")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)(?:\[@\])?\}?$", re.ASCII)
_SHELL_OPERATORS = frozenset(";&|<>()")
_HARDWARE = ("tpu-type", "device-type")
_SLICES = ("num-slices", "num-nodes")
_ENVIRONMENT = "M_"
_DEEPEST_NESTING = 3
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
    strays: tuple[str, ...] = ()
    """Arguments that are no ``key=value``, which MaxText refuses."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that hold flags of a compiler or runtime, or are one."""
    others: int = 0
    """Further starts of MaxText in the same script."""


def read_launch(script: str) -> Launch | None:
    """The MaxText command of a script; ``None`` if it has none.

    Of several, the one that leaves least open, else the first; the others are counted.
    """
    found = list(_launches(script))
    if not found:
        return None
    best = min(found, key=lambda launch: len(launch.unknown))
    return replace(best, others=len(found) - 1)


def _launches(script: str, known: Mapping[str, str] | None = None, first: int = 1, depth: int = 0) -> Iterator[Launch]:
    """Starts in a script, and in the scripts that its commands hold in quotes (``--command="… && python3 …"``)."""
    for command in read_commands(script, known):
        if command.assigns or "maxtext" not in command.text.casefold():
            continue
        command = replace(command, line=first + command.line - 1)
        said = words(command.text)
        if (launch := _maxtext_command(command, said)) is not None:
            yield _with_hardware(launch, said)
            continue
        nested = (word for word in said if depth < _DEEPEST_NESTING and " " in word)
        environment = {**command.scope.environment(), **_set_on_the_line(said)}
        inner = (launch for word in nested for launch in _launches(word, environment, command.line, depth + 1))
        yield from (_with_hardware(launch, said) for launch in inner)


def _maxtext_command(command: Command, said: list[str]) -> Launch | None:
    starts = (i for i, word in enumerate(said) if len(word) <= _LONGEST_COMMAND and _TRAINS.search(word))
    start = next(starts, None)
    if start is None:
        return None
    arguments = []
    for word in said[start + 1 :]:
        if set(word) <= _SHELL_OPERATORS:
            break
        arguments.append(word)
    config = next((word for word in arguments if word.endswith((".yml", ".yaml")) and "=" not in word), None)
    environment = {**command.scope.environment(), **_set_on_the_line(said[:start])}
    environment = {name: _closed(value) for name, value in environment.items()}
    given = [word for word in arguments if _OVERRIDE.match(word)]
    keys = {word.partition("=")[0] for word in given}
    given += [f"{key}={value}" for key, value in _settings_of(environment) if key not in keys]
    strays = (word for word in arguments if word != config and not _OVERRIDE.match(word) and not word.isdigit())
    return Launch(
        config=None if config and has_substitution(config) else config,
        overrides=tuple(word for word in given if not has_substitution(word)),
        line=command.line,
        unknown=(*_open_keys(given), *_open_arguments(arguments, command)),
        strays=tuple(word for word in strays if not has_substitution(word)),
        environment={name: value for name, value in environment.items() if value and is_performance_variable(name)},
    )


def _open_keys(given: list[str]) -> list[str]:
    return [word.partition("=")[0] for word in given if has_substitution(word)]


def _open_arguments(arguments: list[str], command: Command) -> list[str]:
    """Arguments that are a variable which the script sets, to something that only a run can tell."""
    found = (_VARIABLE.match(word) for word in arguments)
    return [f"${name[1]}" for name in found if name and name[1] in command.scope.variables]


def _set_on_the_line(said: list[str]) -> dict[str, str]:
    """Variables that are set for one command: ``XLA_FLAGS=… python3 …``."""
    return {name: value for name, _, value in (word.partition("=") for word in said if _OVERRIDE.match(word))}


def _closed(value: str) -> str:
    return " ".join(word for word in value.split() if not has_substitution(word))


def _settings_of(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Settings that MaxText takes from variables called ``M_<KEY>``."""
    taken = ((name.removeprefix(_ENVIRONMENT), value) for name, value in environment.items() if name.startswith("M_"))
    return [(key.lower(), value) for key, value in taken if key.isupper()]


def _with_hardware(launch: Launch, said: list[str]) -> Launch:
    options = _options(said)
    hardware = next((options[key] for key in _HARDWARE if key in options and not has_substitution(options[key])), None)
    slices = next((options[key] for key in _SLICES if key in options), "")
    count = int(slices) if re.fullmatch(r"[1-9]\d{0,4}", slices, re.ASCII) else None
    return replace(launch, hardware=launch.hardware or hardware, slices=launch.slices or count)


def _options(said: list[str]) -> dict[str, str]:
    """Options of a launcher by their name, with hyphens and without the leading ones."""
    options = {}
    for word, following in zip(said, [*said[1:], ""], strict=True):
        key, separator, value = word.partition("=")
        if key.startswith("--"):
            options[key[2:].replace("_", "-")] = value if separator else following
    return options
