"""What is wrong with a program: typed, with the place, a reason, advice, and a repair where there is one."""

from collections.abc import Iterable
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from asap.mapping.language.position import Position


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


class Repair(BaseModel):
    """Text that replaces a part of one line; the whole line goes where nothing would be left of it."""

    model_config = ConfigDict(frozen=True)

    line: int = Field(description="from 1")
    column: int = Field(description="from 1")
    end_column: int = Field(description="the column after the last that is replaced")
    text: str


class Feedback(BaseModel):
    """One thing that is wrong, and what to do about it."""

    model_config = ConfigDict(frozen=True)

    code: Code
    line: int = Field(description="from 1")
    column: int = Field(description="from 1")
    explanation: str
    suggestion: str
    other_line: int | None = Field(default=None, description="of the other line, where two contradict each other")
    other_column: int | None = None
    repair: Repair | None = Field(default=None, description="an edit after which this is no longer wrong")

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.code}: {self.explanation}; {self.suggestion}"


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
    return Repair(line=line, column=1, end_column=10**9, text="")


def repaired(text: str, found: Iterable[Feedback]) -> str:
    """The program after every repair; of several on one line only the first is made."""
    lines, edited = text.split("\n"), set[int]()
    for repair in (each.repair for each in found):
        if repair is None or repair.line in edited:
            continue
        edited.add(repair.line)
        line = lines[repair.line - 1]
        lines[repair.line - 1] = line[: repair.column - 1] + repair.text + line[repair.end_column - 1 :]
    return "\n".join(lines)
