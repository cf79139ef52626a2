"""What starts a run of MaxText in a script or a manifest: its configuration and ``key=value`` overrides, read without
running anything.

An override that still holds a variable or a substitution is left out, and named. Launchers around the command (xpk)
say the hardware.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from asap.core.errors import UnreadError
from asap.core.numbers import digits
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document, find_named, missing
from asap.experiments.launch.job import set_slices
from asap.experiments.maxtext import BASE, OPEN, TABLE, TOKEN, read_maxtext
from asap.experiments.shell import Command, Start, environment_of, has_substitution, options, starts_in, words

_TRAINS = re.compile(TABLE.command.program if TABLE.command else "")
_OVERRIDE = re.compile(r"[A-Za-z_][\w.]*=")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)(?:\[@\])?\}?$", re.ASCII)
_SHELL_OPERATORS = frozenset(";&|<>()")
_HARDWARE, _SLICES = ("tpu_type", "device_type"), ("num_slices", "num_nodes")
_LONGEST_COMMAND = 300
_NO_MATTER = (
    "base_output_directory", "dataset_path", "dataset_type", "grain_train_files", TOKEN, "run_name", "tokenizer_path",
    *OPEN,
)  # fmt: skip
"""Settings that say where things are, not what is computed, and axes that take what the others leave."""


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


def starts(command: Command) -> bool:
    """Whether a command starts MaxText."""
    return "maxtext" in command.text.casefold() and _program(words(command.text)) is not None


def read_launch(script: str) -> Launch | None:
    """The first MaxText command of a script; ``None`` if it has none."""
    return next((_launch_of(outer, command) for _, outer, command in starts_in(script, starts)), None)


def _launch_of(outer: Command, command: Command) -> Launch:
    """A command that starts MaxText, itself or in quotes of an outer one (``--command="… && python3 …"``)."""
    said = words(command.text)
    arguments = [*takewhile(lambda word: not set(word) <= _SHELL_OPERATORS, said[(_program(said) or 0) + 1 :])]
    config = next((word for word in arguments if word.endswith((".yml", ".yaml")) and "=" not in word), None)
    said_before = environment_of(command).items()  # M_ICI_FSDP_PARALLELISM
    own = ((name[2:].lower(), value) for name, value in said_before if name.startswith("M_") and name.isupper())
    on_the_line = {word.partition("=")[0]: word for word in arguments if _OVERRIDE.match(word)}
    given = on_the_line | {key: f"{key}={value}" for key, value in own} | on_the_line
    variables = (_VARIABLE.match(word) for word in arguments)
    open_ = [f"${name[1]}" for name in variables if name and name[1] in command.scope.variables]
    around = {option.name: option.words[0] for option in options(outer.text) if option.words}
    slices = next((around[key] for key in _SLICES if key in around), "")
    return Launch(
        config=None if config and has_substitution(config) else config,
        overrides=tuple(word for word in given.values() if not has_substitution(word)),
        line=outer.line if command is outer else outer.line + command.line - 1,
        hardware=next((around[key] for key in _HARDWARE if not has_substitution(around.get(key, "$"))), None),
        slices=digits(slices) or None,
        unknown=(*(key for key, word in given.items() if has_substitution(word)), *open_),
    )


def _program(said: list[str]) -> int | None:
    """Which of its words is MaxText's program."""
    return next((i for i, word in enumerate(said) if len(word) <= _LONGEST_COMMAND and _TRAINS.search(word)), None)


def read_maxtext_script(start: Start, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with a start of MaxText in a script, and overrides of the user on top.

    Raises:
        ConfigError: its configuration is not there, or wrong.
    """
    launch, path, overrides = _launch_of(start.outer, start.command), start.path, tuple(overrides)
    given = {text.partition("=")[0] for text in overrides}
    unknown = [key for key in launch.unknown if key not in {*given, *_NO_MATTER}]
    if unsaid := [key for key in unknown if key in TABLE.words]:
        reason = f"sets {', '.join(unsaid)} by a variable whose value is not said"
        raise UnreadError(reason, where=f"{path}:{launch.line}", hint=f"add {' '.join(f'{key}=…' for key in unsaid)}")
    origin = f"{path.name}:{launch.line}"
    experiment = set_slices(launch.hardware, launch.slices, experiment, origin)
    said = [(text, origin) for text in launch.overrides]
    experiment = read_maxtext(_configuration(launch, start), overrides, experiment, said)
    notes = (f"set by a variable whose value is not said: {', '.join(unknown)}",) if unknown else ()
    return experiment.knowing(*notes)


def _configuration(launch: Launch, start: Start) -> Document:
    """The file that MaxText is started with: written by the script, or from its folder or one above it."""
    if launch.config is not None and (found := find_named(launch.config, start.path, start.files)) is not None:
        return found.document()
    if launch.config is None or Path(launch.config).name == BASE.name:
        return Document(BASE, {}, {})
    hint = "give the configuration itself, with the overrides of the script"
    raise missing("starts MaxText with", launch.config, start.path, hint)
