"""The command of a script that starts a run, with what the script says before it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from asap.experiments.files.named_file import Brought
from asap.experiments.shell.made import check_made, made_files, note_on_made
from asap.experiments.shell.scope import Command
from asap.experiments.shell.script import commands_within, read_commands, with_sources
from asap.experiments.shell.undecided import undecided_options
from asap.experiments.shell.words import words

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
        brought: files that come along with the script.
    """

    outer: Command
    command: Command
    path: Path
    text: str
    before: tuple[Command, ...]
    runs: int
    brought: Brought

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
        """Texts of the files that come along, and of those that the script writes; empty ones are made otherwise."""
        return {**self.brought, **made_files(self.before)}

    @cached_property
    def undecided(self) -> dict[str, str]:
        """Options that a variable may hold, with the variable."""
        return undecided_options(self.before, self.outer)

    def check_made(self, named: str) -> None:
        """Raise UnreadError where the script makes the file of that name in a way that is not read."""
        check_made(named, self.files, self.path)

    def note_on_made(self, named: str) -> tuple[str, ...]:
        """That the script makes the file of that name itself; nothing where it does not."""
        return note_on_made(named, made_files(self.before), self.path)

    def notes(self) -> tuple[str, ...]:
        """Which of the runs of the script it is; nothing where there is one."""
        said = f"{self.path.name} starts {self.runs} runs; the one of line {self.outer.line} is read"
        return (said,) if self.runs > 1 else ()


def find_start(
    text: str, path: Path, starts: Callable[[Command], bool], brought: Brought | None = None
) -> Start | None:
    """The first command of a script that is sure to run and starts a run, itself or in quotes; ``None`` for none.

    Args:
        text: of the script.
        path: its file.
        starts: whether a command starts a run of the stack that is asked for.
        brought: files that come along with it.
    """
    whole = with_sources(text, path.parent, brought)
    found = [(outer, inner) for outer, each in _sure(whole) if (inner := next(filter(starts, each), None)) is not None]
    if not found:
        return None
    outer, command = found[0]
    every = tuple(read_commands(whole))
    before = every[: next(place for place, each in enumerate(every, 1) if each is outer)]
    return Start(outer, command, path, whole, before, len(found), brought or {})


@lru_cache(maxsize=8)
def _sure(script: str) -> tuple[tuple[Command, tuple[Command, ...]], ...]:
    """Commands that are sure to run, each with those in its quotes and itself."""
    sure = (each for each in read_commands(script) if each.certain and not each.assigns)
    runs = (each for each in sure if each.text.partition(" ")[0] not in _PRINTS)
    return tuple((each, (*_within(each), each)) for each in runs)


def _within(command: Command) -> tuple[Command, ...]:
    return tuple(each for each in commands_within(command) if each.certain and not each.assigns)


def environment_of(command: Command) -> dict[str, str]:
    """Variables that a command finds, those of its line first."""
    on_the_line = (word.partition("=") for word in words(command.text))
    return command.scope.environment() | {name: value for name, equals, value in on_the_line if equals}
