"""Options that a command takes where a test holds: ``$( [ "$FP8" = 1 ] && echo "--fp8-format hybrid" )``."""

import re

from asap.experiments.shell.conditions import holds
from asap.experiments.shell.variables import Values
from asap.experiments.shell.words import unquoted

_CHOSEN = re.compile(
    r"\$\(\s*(?P<test>!?\s*(?:\[\[?\s(?:[^][]|\[(?!\[)){0,300}?\s\]\]?|\(\([^()]{0,300}\)\)))\s*(?P<when>&&|\|\|)\s*"
    r"echo\s+(?P<said>\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\"'()$`]*?)\s*\)",
    re.DOTALL,
)


def with_chosen(command: str, known: Values) -> tuple[str, tuple[str, ...]]:
    """A command with such options where their test holds, and without them elsewhere; and those whose test the script
    does not decide."""
    undecided: list[str] = []

    def said(found: re.Match[str]) -> str:
        holding, options = holds(found["test"], known), unquoted(found["said"].replace("\\\n", " "))
        if holding is None:
            undecided.append(options)
        return options if holding is not None and holding == (found["when"] == "&&") else ""

    return (_CHOSEN.sub(said, command), tuple(undecided)) if "echo" in command else (command, ())
