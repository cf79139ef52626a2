"""What the products of matrices share: their operands, the plain product, and gathers panel by panel."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from asap.compiler.algorithms.distributed import Distributed, Problem
from asap.compiler.algorithms.steps import common_parts, in_turn, panel, product

if TYPE_CHECKING:
    from jax import Array
    from jax.sharding import PartitionSpec

    from asap.compiler.algorithms.choices import Choices


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
