"""What products of matrices share: operands, the plain product, blocks, panels, shifts along an axis."""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from asap.compiler.algorithms.distributed import Distributed, Problem

if TYPE_CHECKING:
    from jax import Array
    from jax.sharding import PartitionSpec

    from asap.compiler.algorithms.choices import Choices


def product(a: "Array", b: "Array", so_far: "Array | None" = None) -> "Array":
    """A product of blocks in float32, added to what there is."""
    import jax.numpy as jnp

    found = jnp.matmul(a, b, preferred_element_type=jnp.float32)
    return found if so_far is None else so_far + found


def in_turn(choices: "Choices", *arrays: Any) -> Any:
    """The arrays; without overlap only once all of them are there, so that nothing that follows runs beside them."""
    from jax import lax

    return arrays if choices.overlap else lax.optimization_barrier(arrays)


def panel(block: "Array", axis: int, index: "int | Array", panels: int, parts: int) -> "Array":
    """One of several panels of a block: the same share of each of its parts.

    Two operands that are cut differently along the contracted dimension have to send the same elements of it together.
    Cut into parts of equal length first, they do.

    Args:
        block: what a device holds.
        axis: the dimension that is cut.
        index: of the panel.
        panels: their number.
        parts: of the block; the length of a part is the same for both operands.
    """
    before, length, after = block.shape[:axis], block.shape[axis], block.shape[axis + 1 :]
    share = length // parts // panels
    split = block.reshape(*before, parts, panels, share, *after)
    taken = split.take(index, axis=axis + 1)
    return taken.reshape(*before, parts * share, *after)


def joined_panels(panels: "list[Array]", axis: int, parts: int) -> "Array":
    """The block whose panels these are."""
    import jax.numpy as jnp

    before, length, after = panels[0].shape[:axis], panels[0].shape[axis], panels[0].shape[axis + 1 :]
    split = [each.reshape(*before, parts, length // parts, *after) for each in panels]
    return jnp.stack(split, axis + 1).reshape(*before, length * len(panels), *after)


def common_parts(first: int, second: int) -> tuple[int, int]:
    """Parts of the blocks of two operands whose shared dimension is cut over so many devices."""
    whole = math.lcm(first, second)
    return whole // first, whole // second


def shifted(block: "Array", axis: str, length: int, by: int, *, around: bool = True) -> "Array":
    """The block of the device ``by`` places further along an axis; zeros beyond the end unless it goes ``around``."""
    from jax import lax

    pairs = [((place + by) % length, place) for place in range(length) if around or 0 <= place + by < length]
    return lax.ppermute(block, axis, pairs)


def matmul(
    body: Callable[..., Any], problem: Problem, a: "PartitionSpec", b: "PartitionSpec", c: "PartitionSpec"
) -> Distributed:
    """The product of ``m`` by ``k`` and ``k`` by ``n``, with the layouts of operands and result on the grid."""
    shapes = ((problem["m"], problem["k"]), (problem["k"], problem["n"]))
    return Distributed(body, shapes, (a, b), c, partial(_operands, shapes), partial(_product, shapes))


def gathered_product(
    choices: "Choices", a: "Array", b: "Array", axes: tuple[str, str], lengths: tuple[int, int]
) -> "Array":
    """The product of A gathered along one axis of the grid and of B gathered along another, panel by panel.

    Args:
        choices: the number of panels, and whether gathers may run beside products.
        a: the block of A; the contracted dimension is its second.
        b: the block of B; the contracted dimension is its first.
        axes: along which A is gathered, and B.
        lengths: of these axes.
    """
    from jax import lax

    of_a, of_b = common_parts(*lengths)
    total = None
    for index in range(choices.panels):
        left = lax.all_gather(panel(a, 1, index, choices.panels, of_a), axes[0], axis=1, tiled=True)
        above = lax.all_gather(panel(b, 0, index, choices.panels, of_b), axes[1], axis=0, tiled=True)
        left, above = in_turn(choices, left, above)
        total, a, b = in_turn(choices, product(left, above, total), a, b)
    assert total is not None
    return total


def _operands(shapes: tuple[tuple[int, ...], ...]) -> tuple[np.ndarray, ...]:
    draw = np.random.default_rng(0)
    return tuple(draw.standard_normal(shape, np.float32) for shape in shapes)


def _product(shapes: tuple[tuple[int, ...], ...]) -> np.ndarray:
    a, b = _operands(shapes)
    return a @ b
