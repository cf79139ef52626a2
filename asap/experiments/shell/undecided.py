"""Options that a command takes from a variable which a branch fills that is not decided:
``if [ $1 = ds ]; then EXTRA="--deepspeed z3.json"; fi; torchrun train.py $EXTRA``.
"""

import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from asap.core.errors import UsageError
from asap.core.text import plain
from asap.experiments.shell.options import options
from asap.experiments.shell.scope import Command

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


def with_given(script: str, overrides: Iterable[str], is_setting: Callable[[str], bool], within: str = "") -> Given:
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
        if not separator or is_setting(name) or not _uses(within or script, name):
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


def _uses(script: str, name: str) -> bool:
    """Whether a script takes the value of a variable: ``$TP``, ``${TP:-8}``."""
    if _VARIABLE.fullmatch(name) is None:
        return False
    return re.search(rf"\$\{{?{name}(?!\w)|\$\(\([^)]*(?<!\w){name}(?!\w)", script, re.ASCII) is not None
