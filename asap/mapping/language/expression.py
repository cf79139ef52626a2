"""Arithmetic of index maps: whole numbers, ``+ - * / %``, comparisons and ``?:``.

``/`` rounds down and ``%`` takes the sign of its divisor, as in Python; a comparison is 0 or 1.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asap.mapping.language.feedback import Position

if TYPE_CHECKING:
    import numpy as np

DEEPEST = 40
"""Operations inside each other."""

LARGEST = 2**62
"""Magnitude of a value on the way."""


@dataclass(frozen=True)
class Number:
    """A whole number."""

    value: int
    depth = 0


@dataclass(frozen=True)
class Variable:
    """A coordinate of the torus."""

    name: str
    at: Position = field(compare=False)
    depth = 0


@dataclass(frozen=True)
class Operation:
    """An operation on two expressions; ``?:`` has three, the negative sign one."""

    symbol: str
    operands: "tuple[Expression, ...]"
    at: Position = field(compare=False)
    depth: int = field(compare=False)


Expression = Number | Variable | Operation


class DivisionError(Exception):
    """A division by zero at some coordinates."""

    def __init__(self, at: Position, coordinates: tuple[int, ...]):
        super().__init__(f"divides by zero at {coordinates}")
        self.at, self.coordinates = at, coordinates


class OverflowedError(Exception):
    """A value that may be too large for 64 bits."""


def variables(expression: Expression) -> tuple[Variable, ...]:
    """Every use of a variable, from left to right."""
    if isinstance(expression, Variable):
        return (expression,)
    if isinstance(expression, Number):
        return ()
    return tuple(found for operand in expression.operands for found in variables(operand))


def evaluate(expression: Expression, coordinates: "dict[str, np.ndarray]") -> "np.ndarray":
    """Values of an expression at arrays of coordinates of one shape.

    Raises:
        DivisionError: it divides by zero, where the division counts.
        OverflowedError: a value may leave 64 bits.
    """
    import numpy as np

    shape = next(iter(coordinates.values())).shape
    return _value(expression, coordinates, np.ones(shape, bool), tuple(coordinates.values()))[0]


def _value(
    expression: Expression, names: "dict[str, np.ndarray]", counts: "np.ndarray", all: "tuple[np.ndarray, ...]"
) -> "tuple[np.ndarray, int]":
    """Values, and a bound of their magnitude; ``counts`` marks where they are asked for."""
    import numpy as np

    if isinstance(expression, Number):
        return np.full(counts.shape, expression.value, np.int64), expression.value
    if isinstance(expression, Variable):
        found = names[expression.name]
        return found, int(found.max(initial=0))
    first, *rest = expression.operands
    left, bound = _value(first, names, counts, all)
    if expression.symbol == "?:":
        taken = left != 0
        one, one_bound = _value(rest[0], names, counts & taken, all)
        other, other_bound = _value(rest[1], names, counts & ~taken, all)
        return np.where(taken, one, other), max(one_bound, other_bound)
    if not rest:
        return -left, bound
    right, right_bound = _value(rest[0], names, counts, all)
    return _apply(expression, left, right, counts, all), _bound(expression.symbol, bound, right_bound)


def _apply(
    operation: Operation, left: "np.ndarray", right: "np.ndarray", counts: "np.ndarray", all: "tuple[np.ndarray, ...]"
) -> "np.ndarray":
    import numpy as np

    symbol = operation.symbol
    if symbol in "/%":
        zero = (right == 0) & counts
        if zero.any():
            where = np.argmax(zero)
            raise DivisionError(operation.at, tuple(int(axis.flat[where]) for axis in all))
        right = np.where(right == 0, 1, right)
        return left // right if symbol == "/" else left % right
    function = {
        "+": np.add, "-": np.subtract, "*": np.multiply, "<": np.less, "<=": np.less_equal, ">": np.greater,
        ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
    }[symbol]  # fmt: skip
    return function(left, right).astype(np.int64)


def _bound(symbol: str, left: int, right: int) -> int:
    if symbol in ("+", "-"):
        found = left + right
    elif symbol == "*":
        found = left * right
    else:
        found = {"/": left, "%": right}.get(symbol, 1)
    if found > LARGEST:
        raise OverflowedError
    return found
