"""Scripts that start a stack with a table: the files that they name, and settings on the command."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought, below_variable, find_named, missing
from asap.experiments.processes import with_processes
from asap.experiments.settings.stack_settings import dotted
from asap.experiments.several_runs import with_note_on_others
from asap.experiments.shell import Command, has_substitution, options, read_commands, with_sources, words
from asap.experiments.tables.reader import plain_name, read_table
from asap.stacks.registry import specs
from asap.stacks.spec import Spec

_FILES = (".yml", ".yaml", ".json")
_FOLDERS = ("d", "conf_dir")
"""Options that say where files lie whose names follow."""


def is_table_script(text: str) -> bool:
    """Whether a script starts a stack that has a table."""
    return any(_stack_of(command) is not None for command in read_commands(text))


def is_setting(key: str) -> bool:
    """Whether an override is a setting of one of the stacks: these are in sections, as ``trainer.mp``."""
    known = {word for spec in specs().values() if spec.command for word in spec.words()}
    return any(plain_name(spec, key) in known for spec in specs().values() if spec.command)


def read_table_script(
    text: str, path: Path, overrides: Iterable[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with what a script starts.

    Raises:
        ConfigError: a file that it names is not there, or what :func:`read_table` raises.
        UsageError: an override is not ``key=value``.
    """
    commands = read_commands(with_sources(text, path.parent, brought))
    starts = [(spec, command) for command in commands if (spec := _stack_of(command)) is not None]
    spec, start = starts[0]
    said: dict[str, Any] = {}
    for named in _files(spec, start):
        said |= dotted(_document(spec, named, start, path, brought))
    given = {option.name: " ".join(option.words) or "true" for option in options(_rest(spec, start))}
    given = {plain_name(spec, key): value for key, value in given.items() if "." in key}
    if not said and not given:
        reason = f"starts {spec.name} with settings that its program has, which is not read"
        raise ConfigError(reason, where=f"{path}:{start.line}", hint=spec.prints or None)
    undecided = frozenset(key for key, value in given.items() if has_substitution(value))
    said |= {key: value for key, value in given.items() if key not in undecided}
    said = {key: value for key, value in said.items() if plain_name(spec, key) not in undecided}
    read = read_table(spec, said, path, overrides, with_processes(start, experiment), undecided)
    if others := sorted(undecided - spec.words()):
        note = f"set by a variable whose value is not said: {', '.join(plain(key, 60) for key in others)}"
        read = read.model_copy(update={"notes": (*read.notes, note)})
    return with_note_on_others(read, path, len(starts), start.line)


def _stack_of(command: Command) -> Spec | None:
    if command.assigns or not command.certain:
        return None
    return next((one for one in specs().values() if one.command and re.search(one.command.program, command.text)), None)


def _rest(spec: Spec, start: Command) -> str:
    """What follows the program."""
    found = re.search(spec.command.program, start.text) if spec.command else None
    return start.text[found.end() :] if found else ""


def _files(spec: Spec, start: Command) -> list[str]:
    """Files of settings, in the order in which later ones win."""
    rest, command = _rest(spec, start), spec.command
    named = [one.words[0] for one in options(rest) if command and one.name in command.config and one.words]
    if command and command.positional:
        named += [
            word for word in words(rest) if word.endswith(_FILES) and not word.startswith("-") and "=" not in word
        ]
    return list(dict.fromkeys(named))


def _document(spec: Spec, named: str, start: Command, path: Path, brought: Brought | None) -> Mapping[str, Any]:
    folder = next((one.words[0] for one in options(_rest(spec, start)) if one.name in _FOLDERS and one.words), None)
    below = below_variable(named)
    places = [below, *([f"{below_variable(folder)}/{below}"] if folder else [])]
    found = next((one for place in places if (one := find_named(place, path, brought)) is not None), None)
    if found is None:
        raise missing(f"starts {spec.name} with", named, path, "lay it beside the script, or give it as --config")
    return found.document().values
