"""The 2.5D algorithm (Solomonik and Demmel, 2011): copies of the operands, each of which does a share of the steps."""

from typing import TYPE_CHECKING

from asap.compiler.algorithms.cannon import rotated_product
from asap.compiler.algorithms.choices import Choices
from asap.compiler.algorithms.distributed import Distributed, Problem
from asap.compiler.algorithms.matmul import matmul
from asap.compiler.algorithms.steps import common_parts, in_turn, panel, product

if TYPE_CHECKING:
    from jax import Array


def solomonik(choices: Choices, problem: Problem) -> Distributed:
    """On a grid (copies, rows, columns). Operands lie spread over the copies and are gathered first.

    Each copy does its share with Cannon's shifts (``exchange permute``) or with SUMMA's gathers (``exchange gather``);
    the copies of C are added up and spread.
    """
    from jax import lax
    from jax.sharding import PartitionSpec

    def body(a: "Array", b: "Array") -> "Array":
        a = lax.all_gather(a, "copies", axis=1, tiled=True)
        b = lax.all_gather(b, "copies", axis=0, tiled=True)
        a, b = in_turn(choices, a, b)
        total = _by_shifts(choices, a, b) if choices.exchange == "permute" else _by_gathers(choices, a, b)
        (total,) = in_turn(choices, total)
        return lax.psum_scatter(total, "copies", scatter_dimension=0, tiled=True).astype(a.dtype)

    return matmul(
        body, problem, PartitionSpec("rows", ("columns", "copies")), PartitionSpec(("rows", "copies"), "columns"),
        PartitionSpec(("rows", "copies"), "columns"),
    )  # fmt: skip


def _by_shifts(choices: Choices, a: "Array", b: "Array") -> "Array":
    """Cannon's steps from ``copy * steps`` on; the skew takes each copy to its first."""
    from jax import lax

    copies, side, _ = choices.grid
    steps = side // copies
    places = [(c, row, column) for c in range(copies) for row in range(side) for column in range(side)]

    def place(copy: int, row: int, column: int) -> int:
        return (copy * side + row % side) * side + column % side

    left = [(place(c, r, j), place(c, r, j - r - c * steps)) for c, r, j in places]
    up = [(place(c, r, j), place(c, r - j - c * steps, j)) for c, r, j in places]
    axes = ("copies", "rows", "columns")
    return rotated_product(choices, lax.ppermute(a, axes, left), lax.ppermute(b, axes, up), side, steps)


def _by_gathers(choices: Choices, a: "Array", b: "Array") -> "Array":
    """The panel of each copy, gathered along rows and columns."""
    from jax import lax

    copies, rows, columns = choices.grid
    of_a, of_b = common_parts(columns, rows)
    mine = lax.axis_index("copies")
    left = lax.all_gather(panel(a, 1, mine, copies, of_a), "columns", axis=1, tiled=True)
    above = lax.all_gather(panel(b, 0, mine, copies, of_b), "rows", axis=0, tiled=True)
    left, above = in_turn(choices, left, above)
    return product(left, above)
