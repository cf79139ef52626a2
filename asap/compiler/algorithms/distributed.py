"""A distributed algorithm under its choices: what each device computes, and how its arrays lie."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jax.sharding import PartitionSpec

Problem = dict[str, int]
"""Sizes of a problem by name: ``m``, ``n`` and ``k`` of a product, ``side`` and ``steps`` of a stencil."""


@dataclass(frozen=True)
class Distributed:
    """A program on a grid.

    Args:
        body: from the blocks that one device holds to its block of the result.
        shapes: of the whole arguments.
        specs: how each argument lies on the grid.
        result: how the result lies.
        inputs: the arguments as arrays, the same at every call.
        restored: the result in the order of the plain program.
        plain: what the same arguments give on one device, computed without a grid.
        types: element types of the arguments; by default that of the program.
    """

    body: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    specs: "tuple[PartitionSpec, ...]"
    result: "PartitionSpec"
    inputs: Callable[[], tuple[np.ndarray, ...]]
    plain: Callable[[], np.ndarray]
    restored: Callable[[np.ndarray], np.ndarray] = lambda array: array
    types: tuple[str, ...] = ()
