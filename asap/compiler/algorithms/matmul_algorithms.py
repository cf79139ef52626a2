"""Distributed products of matrices.

Cannon's (1969), PUMMA (Choi, Dongarra and Walker, 1994), SUMMA (van de Geijn and Watts, 1997), COSMA (Kwasniewski et
al., 2019), which on a cube is Johnson's, and the 2.5D algorithm (Solomonik and Demmel, 2011).

"""

from typing import TYPE_CHECKING

from asap.compiler.algorithms.choices import Choices
from asap.compiler.algorithms.matmul import (
    Distributed,
    Problem,
    common_parts,
    gathered_product,
    in_turn,
    joined_panels,
    matmul,
    panel,
    product,
    shifted,
)

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


def pumma(choices: Choices, problem: Problem) -> Distributed:
    """On a square grid of p by p, in p steps. The broadcast gathers and picks, adds up zeros, or is sent on."""
    from jax.sharding import PartitionSpec

    side, spec = choices.grid[0], PartitionSpec("rows", "columns")

    def body(a: "Array", b: "Array") -> "Array":
        total = None
        for step in range(side):
            diagonal = _broadcast(choices, a, step)
            following = shifted(b, "rows", side, 1) if choices.overlap and step < side - 1 else b
            (diagonal,) = in_turn(choices, diagonal)
            total, a, b = in_turn(choices, product(diagonal, b, total), a, b)
            b = following if choices.overlap else shifted(b, "rows", side, 1) if step < side - 1 else b
        assert total is not None
        return total.astype(a.dtype)

    return matmul(body, problem, spec, spec, spec)


def _broadcast(choices: Choices, a: "Array", step: int) -> "Array":
    """The block of A in column ``row + step`` on every device of the row."""
    import jax.numpy as jnp
    from jax import lax

    side = choices.grid[0]
    root = (lax.axis_index("rows") + step) % side
    if choices.exchange == "gather":
        return lax.all_gather(a, "columns", axis=0).take(root, axis=0)
    offset = (lax.axis_index("columns") - root) % side
    held = jnp.where(offset == 0, a, jnp.zeros_like(a))
    if choices.exchange == "reduce":
        return lax.psum(held, "columns")
    reach = 1
    while reach < side:
        pairs = [
            (row * side + (row + step + far) % side, row * side + (row + step + far + reach) % side)
            for row in range(side)
            for far in range(min(reach, side - reach))
        ]
        held = held + lax.ppermute(held, ("rows", "columns"), pairs)
        reach *= 2
    return held


def summa(choices: Choices, problem: Problem) -> Distributed:
    """On a grid of r rows by c columns. The operand that is gathered lies transposed on it if C does not stay."""
    from jax.sharding import PartitionSpec

    straight, across = PartitionSpec("rows", "columns"), PartitionSpec("columns", "rows")
    if choices.stationary == "A":
        return matmul(lambda a, b: _stationary_a(choices, a, b), problem, straight, across, straight)
    if choices.stationary == "B":
        return matmul(lambda a, b: _stationary_b(choices, a, b), problem, across, straight, straight)
    rows, columns = choices.grid

    def stationary_c(a: "Array", b: "Array") -> "Array":
        return gathered_product(choices, a, b, ("columns", "rows"), (columns, rows)).astype(a.dtype)

    return matmul(stationary_c, problem, straight, straight, straight)


def _stationary_a(choices: Choices, a: "Array", b: "Array") -> "Array":
    """Gathers a panel of B's columns, and adds up along the row what each device gets for these columns of C."""
    from jax import lax

    rows, columns = choices.grid
    of_b, of_c = common_parts(rows, columns)
    found = []
    for index in range(choices.panels):
        beside = lax.all_gather(panel(b, 1, index, choices.panels, of_b), "rows", axis=1, tiled=True)
        (partial,) = in_turn(choices, product(a, *in_turn(choices, beside)))
        part = lax.psum_scatter(partial, "columns", scatter_dimension=1, tiled=True)
        part, b = in_turn(choices, part.astype(a.dtype), b)
        found.append(part)
    return joined_panels(found, 1, of_c)


def _stationary_b(choices: Choices, a: "Array", b: "Array") -> "Array":
    """Gathers a panel of A's rows, and adds up along the column what each device gets for these rows of C."""
    from jax import lax

    rows, columns = choices.grid
    of_a, of_c = common_parts(columns, rows)
    found = []
    for index in range(choices.panels):
        above = lax.all_gather(panel(a, 0, index, choices.panels, of_a), "columns", axis=0, tiled=True)
        (partial,) = in_turn(choices, product(*in_turn(choices, above), b))
        part = lax.psum_scatter(partial, "rows", scatter_dimension=0, tiled=True)
        part, a = in_turn(choices, part.astype(a.dtype), a)
        found.append(part)
    return joined_panels(found, 0, of_c)


def cosma(choices: Choices, problem: Problem) -> Distributed:
    """On a grid (m, n, k): A is gathered over n and B over m, panel by panel; C is added up and spread over k."""
    from jax import lax
    from jax.sharding import PartitionSpec

    over_m, over_n, _ = choices.grid

    def body(a: "Array", b: "Array") -> "Array":
        total = gathered_product(choices, a, b, ("n", "m"), (over_n, over_m))
        return lax.psum_scatter(total, "k", scatter_dimension=0, tiled=True).astype(a.dtype)

    return matmul(
        body, problem, PartitionSpec("m", ("k", "n")), PartitionSpec(("k", "m"), "n"), PartitionSpec(("m", "k"), "n")
    )


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
