"""Cannon's algorithm (1969): blocks of A move along rows, those of B along columns, one place a step."""

from typing import TYPE_CHECKING

from asap.compiler.algorithms.choices import Choices
from asap.compiler.algorithms.distributed import Distributed, Problem
from asap.compiler.algorithms.matmul import matmul
from asap.compiler.algorithms.steps import in_turn, product, shifted

if TYPE_CHECKING:
    from jax import Array

_PLACES = ("rows", "columns")


def cannon(choices: Choices, problem: Problem) -> Distributed:
    """On a square grid of p by p, in p steps."""
    from jax.sharding import PartitionSpec

    side, spec = choices.grid[0], PartitionSpec(*_PLACES)

    def body(a: "Array", b: "Array") -> "Array":
        a, b = skewed(a, b, side)
        return rotated_product(choices, a, b, side, side).astype(a.dtype)

    return matmul(body, problem, spec, spec, spec)


def skewed(a: "Array", b: "Array", side: int) -> "tuple[Array, Array]":
    """Blocks of A moved left by their row, those of B up by their column: then factors are on the same device."""
    from jax import lax

    places = [(row, column) for row in range(side) for column in range(side)]
    left = [(row * side + column, row * side + (column - row) % side) for row, column in places]
    up = [(row * side + column, (row - column) % side * side + column) for row, column in places]
    return lax.ppermute(a, _PLACES, left), lax.ppermute(b, _PLACES, up)


def rotated_product(choices: Choices, a: "Array", b: "Array", side: int, steps: int) -> "Array":
    """The sum of so many products, with A one place to the left and B one up after each."""
    total = None
    for step in range(steps):
        last = step == steps - 1
        if choices.overlap and not last:
            following = shifted(a, "columns", side, 1), shifted(b, "rows", side, 1)
            total = product(a, b, total)
            a, b = following
        else:
            total = product(a, b, total)
            if not last:
                total, a, b = in_turn(choices, total, a, b)
                a, b = shifted(a, "columns", side, 1), shifted(b, "rows", side, 1)
    assert total is not None
    return total
