"""What is wrong with a program: typed, with the place, a reason, advice, and a repair where there is one."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from pydantic import Field

from asap.core.feedback import END_OF_LINE, Repair
from asap.core.feedback import Feedback as General


@dataclass(frozen=True, order=True)
class Position:
    """Line and columns, from 1; ``end`` is the column after the last."""

    line: int
    column: int
    end: int

    def to(self, other: "Position") -> "Position":
        """From here to the end of another on the same line."""
        return Position(self.line, self.column, max(self.end, other.end))

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


class Code(StrEnum):
    """Kinds of feedback that need no compiler."""

    SYNTAX = "SYNTAX"
    TOO_LARGE = "TOO_LARGE"
    UNKNOWN_NAME = "UNKNOWN_NAME"
    UNDEFINED_MAP = "UNDEFINED_MAP"
    NO_SUCH_TENSOR = "NO_SUCH_TENSOR"
    LAYERS_OUTSIDE = "LAYERS_OUTSIDE"
    MESH_PRODUCT = "MESH_PRODUCT"
    GRID_PRODUCT = "GRID_PRODUCT"
    NEEDS_SQUARE = "NEEDS_SQUARE"
    NOT_APPLICABLE = "NOT_APPLICABLE"
    NOT_A_PERMUTATION = "NOT_A_PERMUTATION"
    DIVISION_BY_ZERO = "DIVISION_BY_ZERO"
    NOT_DIVISIBLE = "NOT_DIVISIBLE"
    AXIS_TWICE = "AXIS_TWICE"
    CONTRADICTION = "CONTRADICTION"


class Feedback(General, frozen=True):
    """One thing that is wrong with a program, and what to do about it."""

    code: Code
    line: int = Field(description="from 1")
    column: int = Field(description="from 1")


def feedback(
    code: Code,
    at: Position,
    explanation: str,
    suggestion: str,
    *,
    repair: Repair | None = None,
    other: Position | None = None,
) -> Feedback:
    """Feedback at a place."""
    return Feedback(
        code=code, line=at.line, column=at.column, explanation=explanation, suggestion=suggestion, repair=repair,
        other_line=other.line if other else None, other_column=other.column if other else None,
    )  # fmt: skip


def replace(at: Position, text: str) -> Repair:
    """The repair that writes something else at a place."""
    return Repair(line=at.line, column=at.column, end_column=at.end, text=text)


def delete_line(line: int) -> Repair:
    """The repair that takes a decision back."""
    return Repair(line=line, column=1, end_column=END_OF_LINE, text="")


LONGEST = 60
"""Characters of a name that are compared; a longer one is no slip of the keyboard."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The closest of some names, or ``None`` if none is close."""
    if len(name) > LONGEST:
        return None
    lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return lower[found[0]] if found else None
