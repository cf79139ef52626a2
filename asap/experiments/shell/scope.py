"""Variables of a script, as they are when a command is reached."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from asap.core.errors import UnreadError

_OPTION = re.compile(r"(?:^|\s)--[a-z]")
_MOST = 2_000_000  # characters and variables that the commands of a script may come to


@dataclass(frozen=True)
class Scope:
    """Variables at a command; ``None``: set to something that only a run can tell."""

    variables: Mapping[str, str | None]
    exported: frozenset[str]

    def environment(self) -> dict[str, str]:
        """What commands find in their environment, in the order in which a script says it."""
        return {name: value for name, value in self.variables.items() if value is not None and name in self.exported}


@dataclass
class Variables:
    """Variables as a script goes on."""

    values: dict[str, str | None]
    exported: set[str]
    fixed: dict[str, str] = field(default_factory=dict)
    """Those that are ``readonly``: nothing changes them."""
    _seen: Scope | None = None
    _spent: int = 0

    def scope(self) -> Scope:
        """Variables as they are now."""
        if self._seen is None:
            self.spend(len(self.values))
            self._seen = Scope(dict(self.values), frozenset(self.exported))
        return self._seen

    def spend(self, amount: int) -> None:
        """Count what commands come to; raises UnreadError where that is more than any script of a run."""
        self._spent += amount
        if self._spent > _MOST:
            raise UnreadError(f"its variables come to more than {_MOST:,} characters")

    def set(self, more: Mapping[str, str | None]) -> None:
        """Set variables."""
        self._seen = None
        self.values |= {**more, **self.fixed}

    def export(self, name: str) -> None:
        """Hand a variable on to commands."""
        self._seen = None
        self.exported.add(name)

    def assign(self, name: str, value: str, appended: bool, certain: bool) -> None:
        """Remember a value; one that only a run can tell makes the name open, an addition that may not be made its
        rest."""
        if name in self.fixed:
            return
        before = self.values.get(name, "")
        if appended:
            value = "" if before is None else before + value
        # of several arguments those without a substitution are known
        is_open = ("$(" in value or "`" in value) and _OPTION.search(value) is None
        is_open = is_open or (appended and before is None)
        if not certain and before and value.startswith(before):
            value = f"{before} ${{{name}}}"
        elif not certain:
            is_open = value != self.values.get(name)
        self.set({name: None if is_open else value})


EVALUATED = "eval"  # the text of a command that evaluates others; these are as it is written, with their variables


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
