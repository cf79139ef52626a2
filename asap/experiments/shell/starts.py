"""The command of a script that starts a run, with files and variables that the script sets before it."""

import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from asap.core.errors import UsageError
from asap.core.text import plain
from asap.experiments.files.documents import Brought
from asap.experiments.shell.scope import Command
from asap.experiments.shell.script import commands_within, inline_files, read_commands
from asap.experiments.shell.words import options, words

_CONFIGURATIONS = (".yaml", ".yml", ".json", ".toml", ".conf")
_TARGET = re.compile(
    r"(?<![\d>&])(?P<appended>>?)>\s*(?P<file>[^\s<>|;&]+)|\btee\s+(?P<more>-a\s+)?(?P<copy>[^\s<>|;&-][^\s<>|;&]*)"
)
_IN_PLACE, _EDITORS = ("-i", "--inplace", "--in-place"), ("sed", "perl", "yq", "jq")
_COPYING = ("cp", "mv")


def made_files(commands: Iterable[Command]) -> dict[str, str]:
    """Texts of the files that commands write by here-documents; one that is made in another way is empty."""
    files: dict[str, str] = {}
    for command in commands:
        said, targets = words(command.text), list(_TARGET.finditer(command.text))
        changed = [(target["file"] or target["copy"]).strip("\"'") for target in targets]
        if command.document and targets:
            whole = command.certain and not (targets[0]["appended"] or targets[0]["more"])
            files |= {changed[0]: command.document if whole else ""}
        elif not command.document:
            program = said[0].rpartition("/")[2] if said else ""
            if program in _EDITORS and any(word.startswith(_IN_PLACE) for word in said[1:]):
                changed += said[1:]
            changed += said[-1:] if program in _COPYING else []
            files |= {name: "" for name in changed if name.endswith(_CONFIGURATIONS)}
    return files


_FILLED = re.compile(r"[\"']?\$\{?([A-Za-z_]\w*)(?:\[[@*]\])?\}?[\"']?", re.ASCII)
_ASSIGNED = re.compile(r"(?:(?:export|local|declare|readonly)\s+(?:-\w+\s+)*)?([A-Za-z_]\w*)\+?=", re.ASCII)


def undecided_options(before: Iterable[Command], start: Command) -> dict[str, str]:
    """Options that a command may get, or get another value of, each with the variable that holds it: ``${EXTRA}``.

    Args:
        before: what the script comes to before the command.
        start: the command.
    """
    open_ = {found[1] for word in start.text.split() if (found := _FILLED.fullmatch(word))}
    filled = ((each, _ASSIGNED.match(each.text)) for each in before if each.assigns and not each.certain)
    return {
        option.name: f"${{{name[1]}}}"
        for command, name in filled
        if name and name[1] in open_
        for option in options(command.text)
    }


_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_COMMENT = re.compile(r"#!|\s*(?:\n|$)")


@dataclass(frozen=True)
class Given:
    """A script with the variables that it is given, and what else was said."""

    script: str
    rest: list[str]
    names: tuple[str, ...] = ()

    def note(self, name: str) -> tuple[str, ...]:
        """What was set in the script of that name; nothing where nothing was."""
        return (f"set as variables of {name}: {', '.join(self.names)}",) if self.names else ()


def set_given(script: str, overrides: Iterable[str], is_setting: Callable[[str], bool], within: str = "") -> Given:
    """The script with those overrides set as its variables that it uses, whatever it assigns to them.

    Args:
        script: its text.
        overrides: ``key=value`` of the user.
        is_setting: whether the stack itself has a setting of that name, which is then meant.
        within: the script with the files that it sources, which may use them as well.

    Raises:
        UsageError: a variable is given twice.
    """
    given: dict[str, str] = {}
    rest: list[str] = []
    for override in overrides:
        name, separator, value = override.partition("=")
        taken = rf"\$\{{?{name}(?!\w)|\$\(\([^)]*(?<!\w){name}(?!\w)"  # $TP, ${{TP:-8}}
        used = _VARIABLE.fullmatch(name) and re.search(taken, within or script, re.ASCII)
        if not separator or is_setting(name) or not used:
            rest.append(override)
        elif name in given:
            raise UsageError("is given twice", where=plain(name, 80))
        else:
            given[name] = value
    if not given:
        return Given(script, rest)
    set_first = "".join(f"readonly {name}={shlex.quote(value)}; export {name}; " for name, value in given.items())
    same_line = _COMMENT.match(script) is not None
    return Given(
        f"{set_first}{'' if same_line else chr(10)}{script}", rest, tuple(f"{k}={v}" for k, v in given.items())
    )


_PRINTS = ("echo", "printf")


@dataclass(frozen=True)
class Start:
    """A command that starts a run.

    Args:
        outer: the command, as it stands in the script.
        command: the one that starts the run: in quotes of the other, or the same.
        path: the script.
        text: of the script, with the files that it sources.
        before: commands up to this one.
        runs: how many the script starts.
    """

    outer: Command
    command: Command
    path: Path
    text: str
    before: tuple[Command, ...]
    runs: int

    @property
    def where(self) -> str:
        """The line of the command, for errors."""
        return f"{self.path}:{self.outer.line}"

    @cached_property
    def environment(self) -> dict[str, str]:
        """Variables that the command finds, those of its line first."""
        return environment_of(self.command)

    @cached_property
    def files(self) -> Brought:
        """Texts of the files that the script writes; empty ones are made otherwise."""
        return made_files(self.before)

    @cached_property
    def undecided(self) -> dict[str, str]:
        """Options that a variable may hold, with the variable."""
        return undecided_options(self.before, self.outer)

    def notes(self) -> tuple[str, ...]:
        """Which of the runs of the script it is; nothing where there is one."""
        said = f"{self.path.name} starts {self.runs} runs; the one of line {self.outer.line} is read"
        return (said,) if self.runs > 1 else ()


def find_start(text: str, path: Path, starts: Callable[[Command], bool]) -> Start | None:
    """The first command of a script that is sure to run and starts a run, itself or in quotes; ``None`` for none."""
    whole = inline_files(text, path.parent)
    if not (found := starts_in(whole, starts)):
        return None
    place, outer, command = found[0]
    return Start(outer, command, path, whole, tuple(read_commands(whole))[: place + 1], len(found))


def starts_in(script: str, starts: Callable[[Command], bool]) -> list[tuple[int, Command, Command]]:
    """Commands of a script that are sure to run and start a run: the place of each, it, and the one in its quotes."""
    found = ((place, each[-1], next(filter(starts, each), None)) for place, each in _sure(script))
    return [(place, outer, command) for place, outer, command in found if command is not None]


@lru_cache(maxsize=8)
def _sure(script: str) -> tuple[tuple[int, tuple[Command, ...]], ...]:
    """Places of commands that are sure to run, each with those in its quotes and itself."""
    sure = ((place, each) for place, each in enumerate(read_commands(script)) if each.certain and not each.assigns)
    runs = ((place, each) for place, each in sure if each.text.partition(" ")[0] not in _PRINTS)
    return tuple(
        (place, (*(one for one in commands_within(each) if one.certain and not one.assigns), each))
        for place, each in runs
    )


def environment_of(command: Command) -> dict[str, str]:
    """Variables that a command finds, those of its line first."""
    on_the_line = (word.partition("=") for word in words(command.text))
    return command.scope.environment() | {name: value for name, equals, value in on_the_line if equals}
