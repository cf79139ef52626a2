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


def with_chosen(command: str, known: Values) -> str:
    """A command with such options where their test holds, and without them where it does not; those whose test the
    script does not decide stay as they are."""
    return _CHOSEN.sub(lambda found: _said(found, known), command) if "echo" in command else command


def _said(found: re.Match[str], known: Values) -> str:
    holding = holds(found["test"], known)
    if holding is None:
        return found[0]
    return unquoted(found["said"].replace("\\\n", " ")) if holding == (found["when"] == "&&") else ""
