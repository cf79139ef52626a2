"""Options that a command takes from a variable which a branch fills that is not decided:
``if [ $1 = ds ]; then EXTRA="--deepspeed z3.json"; fi; torchrun train.py $EXTRA``."""

import re
from collections.abc import Iterable

from asap.experiments.shell.command import Command
from asap.experiments.shell.options import options

_FILLED = re.compile(r"[\"']?\$\{?([A-Za-z_]\w*)(?:\[[@*]\])?\}?[\"']?", re.ASCII)
_ASSIGNED = re.compile(r"(?:(?:export|local|declare|readonly)\s+(?:-\w+\s+)*)?([A-Za-z_]\w*)\+?=", re.ASCII)


def undecided_options(before: Iterable[Command], start: Command) -> dict[str, str]:
    """Options that a command may get, or get another value of, each with the variable that holds it: ``${EXTRA}``.

    Args:
        before: what the script comes to before the command.
        start: the command.
    """
    open_ = {found[1] for word in start.text.split() if (found := _FILLED.fullmatch(word))}
    filled = ((command, _filled_by(command)) for command in before if not command.certain)
    return {
        option.name: f"${{{name}}}" for command, name in filled if name in open_ for option in options(command.text)
    }


def _filled_by(command: Command) -> str:
    """The variable that an assignment fills."""
    found = _ASSIGNED.match(command.text) if command.assigns else None
    return found[1] if found else ""
