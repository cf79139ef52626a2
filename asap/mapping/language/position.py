"""Where something stands in a program."""

from dataclasses import dataclass


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
