"""Rows on their way to columns: names and lanes become numbers."""

from collections.abc import Hashable
from typing import TypeVar

Value = TypeVar("Value", bound=Hashable)


class Numbering(dict[Value, int]):
    """Gives each different value the next number."""

    def __missing__(self, value: Value) -> int:
        number = self[value] = len(self)
        return number
