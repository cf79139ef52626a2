"""Feedback on something that has a text form, such as a plan or a mapping program: typed, with advice and a repair."""

from collections.abc import Iterable

from pydantic import BaseModel, Field

END_OF_LINE = 10**9


class Repair(BaseModel, frozen=True):
    """Text that replaces a part of one line; the whole line goes where nothing would be left of it."""

    line: int = Field(default=1, description="from 1")
    column: int = Field(default=1, description="from 1")
    end_column: int = Field(default=END_OF_LINE, description="the column after the last that is replaced")
    text: str


class Feedback(BaseModel, frozen=True):
    """One thing that is wrong or could be better, and what to do about it.

    ``code`` is one of a closed list that each giver of feedback has: for mapping programs
    :class:`asap.mapping.language.feedback.Code`, for what came of an evaluation
    :class:`asap.optimize.outcome.Code`.
    """

    code: str
    line: int | None = Field(default=None, description="from 1; null: of the whole")
    column: int | None = Field(default=None, description="from 1; null: of the whole")
    explanation: str
    suggestion: str
    other_line: int | None = Field(default=None, description="of the other line, where two contradict each other")
    other_column: int | None = None
    axis: str | None = Field(default=None, description="mesh axis that it is about")
    repair: Repair | None = Field(default=None, description="an edit of the text after which this is no longer wrong")
    repaired_step_time_s: float | None = Field(
        default=None, description="modelled step time of the same schedule after the repair; null: not known"
    )

    def __str__(self) -> str:
        place = f"{self.line}:{self.column}: " if self.line else ""
        return f"{place}{self.code}: {self.explanation}; {self.suggestion}"


def repaired(text: str, found: Iterable[Feedback]) -> str:
    """The text after every repair; of several on one line only the first is made."""
    lines, edited = text.split("\n"), set[int]()
    for repair in (each.repair for each in found):
        if repair is None or repair.line in edited:
            continue
        edited.add(repair.line)
        line = lines[repair.line - 1]
        lines[repair.line - 1] = line[: repair.column - 1] + repair.text + line[repair.end_column - 1 :]
    return "\n".join(lines)
