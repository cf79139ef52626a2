"""PUMMA (Choi, Dongarra and Walker, 1994), Fox's algorithm: a diagonal of A is broadcast along rows, B moves up."""

from typing import TYPE_CHECKING

from asap.compiler.algorithms.choices import Choices
from asap.compiler.algorithms.distributed import Distributed, Problem
from asap.compiler.algorithms.matmul import matmul
from asap.compiler.algorithms.steps import in_turn, product, shifted

if TYPE_CHECKING:
    from jax import Array


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
