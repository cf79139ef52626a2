"""Branches of a script: ``if``, ``case`` and loops, taken, left, or not decided."""

import re
from dataclasses import dataclass

from asap.experiments.shell.conditions import holds, matches
from asap.experiments.shell.variables import expand, has_substitution

_KEYWORD = re.compile(r"\s*(if|elif|else|fi|then|case|esac|for|while|until|do|done|select|[{}!])(?=\s|$)")
_CASE = re.compile(r"\s*(.+?)\s+in(?:\s+(.*))?", re.DOTALL)
_LAUNCH = re.compile(
    r"\s*(?:!\s+)?(?P<command>(?:\w+=\S*\s+|(?:time|nohup|timeout\s+\S+)\s+)*"
    r"(?:(?:\S*/)?(?:torchrun|deepspeed|accelerate|srun|mpirun|mpiexec)\s|\S*python3?\s+-m\s+torch\.distributed).*)",
    re.DOTALL,
)
"""A condition that is itself the training: ``if torchrun …; then``, ``until srun …; do``."""
_LOOP = re.compile(r"\s*([A-Za-z_]\w*)\s+in\s+(.*)", re.ASCII | re.DOTALL)


@dataclass
class _Block:
    """One ``if``, ``case`` or loop that is open."""

    kind: str
    taken: bool | None = None
    before: bool | None = False
    """Whether a branch before the current one was taken."""
    word: str = ""
    condition: str | None = None
    """Text of a condition that is not complete."""
    runs: bool = False
    """Whether its condition is a command that is run for itself."""

    def branch(self, now: bool | None) -> None:
        """Begin the next branch, whose own condition is ``now``."""
        self.taken = False if self.before is True else None if self.before is None and now is not False else now
        self.before = True if True in (self.before, now) else None if None in (self.before, now) else False


class Branches:
    """Where a script is, as it is read command by command."""

    def __init__(self) -> None:
        self._open: list[_Block] = []

    @property
    def taken(self) -> bool | None:
        """Whether the current place is reached; ``None``: not decided."""
        states = [block.taken if block.condition is None else False for block in self._open]
        return False if False in states else None if None in states else True

    def follow(self, operator: str, command: str, known: dict[str, str | None]) -> str:
        """What is left of a simple command after the keywords before it; nothing where it belongs to a condition."""
        block = self._open[-1] if self._open else None
        if block and block.kind == "case" and block.condition is not None:
            return self._arm(block, operator, command, known)
        if operator == ";;" and block and block.kind == "case":
            block.condition = ""
            return self._arm(block, "", command, known)
        found = _KEYWORD.match(command)
        if found is None:
            if block and block.condition is not None:
                block.condition += f" {operator} {command}"
                return ""
            return command.strip()
        rest = command[found.end() :]
        return self._keyword(found[1], rest, known) if found[1] not in "{}!" else self.follow(operator, rest, known)

    def _keyword(self, word: str, rest: str, known: dict[str, str | None]) -> str:
        block = self._open[-1] if self._open else None
        if word in ("if", "while", "until"):
            if launch := _LAUNCH.fullmatch(rest):
                self._open.append(_Block(word, taken=True, runs=True))
                return launch["command"].strip()
            self._open.append(_Block(word, condition=rest))
        elif word == "case":
            self._begin_case(rest, known)
        elif word in ("for", "select"):
            self._begin_for(rest, known)
        elif block is None:
            return ""
        elif word == "elif":
            block.condition = rest
        elif word == "else":
            block.branch(True)
            return self.follow("", rest, known)
        elif word in ("then", "do"):
            self._decide(block, known)
            return self.follow("", rest, known)
        else:
            self._open.pop()
        return ""

    def _decide(self, block: _Block, known: dict[str, str | None]) -> None:
        if block.condition is None and not block.runs:
            return
        found = holds(block.condition, known) if block.condition is not None else None
        block.runs = False
        block.condition = None
        if block.kind == "if":
            block.branch(found)
        else:  # a loop whose condition is not known is taken once
            block.taken = found is not (block.kind == "until")

    def _begin_for(self, rest: str, known: dict[str, str | None]) -> None:
        found = _LOOP.fullmatch(rest)
        items = expand(found[2], known).split() if found else ["$"]
        if found:
            known[found[1]] = items[0] if len(items) == 1 and not has_substitution(items[0]) else None
        no_arguments = bool(found) and items in (['"$@"'], ["$@"], ["$*"]) and known.get("#") == "0"
        self._open.append(_Block("for", taken=bool(items) and not no_arguments))

    def _begin_case(self, rest: str, known: dict[str, str | None]) -> None:
        found = _CASE.fullmatch(rest)
        block = _Block("case", taken=False, word=found[1] if found else "$", condition="")
        self._open.append(block)
        if found and found[2]:
            self._arm(block, "", found[2], known)

    def _arm(self, block: _Block, operator: str, command: str, known: dict[str, str | None]) -> str:
        """Collect the patterns of an arm up to ``)``."""
        if command.split() == ["esac"]:
            self._open.pop()
            return ""
        if operator == ")":
            patterns, block.condition = block.condition or "", None
            block.branch(matches(block.word, patterns, known))
            return self.follow("", command, known)
        block.condition = f"{block.condition}{'|' if operator == '|' else ''}{command.strip()}"
        return ""
