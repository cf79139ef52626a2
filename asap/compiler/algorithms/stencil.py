"""A five-point stencil on tiles: halos come from the neighbours, once for as many steps as they are wide."""

from typing import TYPE_CHECKING

import numpy as np

from asap.compiler.algorithms.choices import Choices
from asap.compiler.algorithms.matmul import Distributed, Problem, in_turn, shifted

if TYPE_CHECKING:
    from jax import Array


def stencil(choices: Choices, problem: Problem) -> Distributed:
    """``steps`` Jacobi steps on a square of ``side`` cells, with zeros around it, on a grid of rows by columns."""
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import PartitionSpec

    side, steps, halo = problem["side"], problem["steps"], choices.halo
    if steps % halo:
        raise ValueError(f"{steps} steps do not divide by a halo of {halo}")
    if any(halo > side // length for length in choices.grid):
        raise ValueError(f"a halo of {halo} is wider than a tile of {side} cells cut by {choices.grid}")
    spec = PartitionSpec("rows", "columns")

    def body(tile: "Array") -> "Array":
        height, width = tile.shape
        row = lax.axis_index("rows") * height - halo + jnp.arange(height + 2 * halo)
        column = lax.axis_index("columns") * width - halo + jnp.arange(width + 2 * halo)
        inside = ((row >= 0) & (row < side))[:, None] & ((column >= 0) & (column < side))[None, :]
        for _ in range(steps // halo):
            cells = _add_halo(choices, _add_halo(choices, tile, 0), 1)
            for _ in range(halo):
                cells = jnp.where(inside, _step(cells), 0.0)
            tile = cells[halo:-halo, halo:-halo]
        return tile

    def cells() -> tuple[np.ndarray, ...]:
        return (np.random.default_rng(0).standard_normal((side, side), np.float32),)

    def plain() -> np.ndarray:
        (found,) = cells()
        for _ in range(steps):
            wide = np.pad(found, 1)
            found = (wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]) / np.float32(4)
        return found

    return Distributed(body, ((side, side),), (spec,), spec, cells, plain, types=("float32",))


def _add_halo(choices: Choices, tile: "Array", dimension: int) -> "Array":
    """The tile between the rims of its neighbours along a dimension."""
    import jax.numpy as jnp
    from jax import lax

    axis, length, halo = choices.axes[dimension], choices.grid[dimension], choices.halo
    first = lax.slice_in_dim(tile, 0, halo, axis=dimension)
    last = lax.slice_in_dim(tile, tile.shape[dimension] - halo, tile.shape[dimension], axis=dimension)
    before = shifted(last, axis, length, -1, around=False)
    before, first = in_turn(choices, before, first)
    after = shifted(first, axis, length, 1, around=False)
    before, tile, after = in_turn(choices, before, tile, after)
    return jnp.concatenate((before, tile, after), dimension)


def _step(cells: "Array") -> "Array":
    """The mean of the four neighbours; wrong on the rim, which is one cell of the halo."""
    import jax.numpy as jnp

    inner = (cells[:-2, 1:-1] + cells[2:, 1:-1] + cells[1:-1, :-2] + cells[1:-1, 2:]) / 4
    return jnp.pad(inner, 1)
