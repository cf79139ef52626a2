"""What a command takes where a test holds: ``$( [ "$FP8" = 1 ] && echo "--fp8-format hybrid" )``, or else something
other: ``$([ -z "$WORLD_SIZE" ] && echo -n 1 || echo -n $WORLD_SIZE)``."""

import re

from asap.experiments.shell.conditions import holds
from asap.experiments.shell.variables import Values
from asap.experiments.shell.words import unquoted

_SAID = r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\"'()`|;&]*?"
_CHOSEN = re.compile(
    r"\$\(\s*(?P<test>!?\s*(?:\[\[?\s(?:[^][]|\[(?!\[)){0,300}?\s\]\]?|\(\([^()]{0,300}\)\)))\s*(?P<when>&&|\|\|)\s*"
    rf"echo\s+(?:-n\s+)?(?P<said>{_SAID})\s*(?:\|\|\s*echo\s+(?:-n\s+)?(?P<other>{_SAID})\s*)?\)",
    re.DOTALL,
)


def with_chosen(command: str, known: Values) -> tuple[str, tuple[str, ...]]:
    """A command with such options where their test holds, and without them elsewhere; and those whose test the script
    does not decide. One of two values that it does not decide stays as it is written."""
    undecided: list[str] = []

    def said(found: re.Match[str]) -> str:
        holding, options = holds(found["test"], known), _text(found["said"])
        other = _text(found["other"] or "")
        if holding is None and other and not other.startswith("-"):
            return found[0]
        if holding is None:
            undecided.extend(filter(None, (options, other)))
            return ""
        return options if holding == (found["when"] == "&&") else other

    return (_CHOSEN.sub(said, command), tuple(undecided)) if "echo" in command else (command, ())


def _text(said: str) -> str:
    return unquoted(said.replace("\\\n", " "))
