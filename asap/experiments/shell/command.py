"""A command of a script, with what is known where it is reached."""

from dataclasses import dataclass

from asap.experiments.shell.scope import Scope

EVALUATED = "eval"
"""The text of a command that evaluates others; these are as it is written, with their variables."""


@dataclass(frozen=True)
class Command:
    """A simple command, or an assignment, with the variables replaced that are known."""

    text: str
    written: str
    """As the script has it."""
    line: int
    certain: bool
    """Whether it is run: no condition before it is undecided."""
    scope: Scope
    assigns: bool = False
    document: str = ""
    """The here-document of its line, with the variables replaced that are known."""
    cut: str = ""
    """What a comment in the middle of it keeps from it."""
