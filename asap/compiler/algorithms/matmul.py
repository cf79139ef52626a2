"""What the products of matrices share: their operands and the plain product."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from asap.compiler.algorithms.distributed import Distributed, Problem

if TYPE_CHECKING:
    from jax.sharding import PartitionSpec


def matmul(
    body: Callable[..., Any], problem: Problem, a: "PartitionSpec", b: "PartitionSpec", c: "PartitionSpec"
) -> Distributed:
    """The product of ``m`` by ``k`` and ``k`` by ``n``, with the layouts of operands and result on the grid."""
    shapes = ((problem["m"], problem["k"]), (problem["k"], problem["n"]))
    return Distributed(body, shapes, (a, b), c, partial(_operands, shapes), partial(_product, shapes))


def _operands(shapes: tuple[tuple[int, ...], ...]) -> tuple[np.ndarray, ...]:
    draw = np.random.default_rng(0)
    return tuple(draw.standard_normal(shape, np.float32) for shape in shapes)


def _product(shapes: tuple[tuple[int, ...], ...]) -> np.ndarray:
    a, b = _operands(shapes)
    return a @ b
