"""A distributed algorithm: what each device computes under its choices, and the jitted program on a grid of devices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asap.compiler.algorithms.choices import Choices
from asap.mapping.device_order import places
from asap.mapping.language.program import Program

if TYPE_CHECKING:
    from jax.sharding import AbstractMesh, Mesh, PartitionSpec


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


def grid_of(choices: Choices, devices: Sequence[Any], program: Program, topology: tuple[int, ...]) -> "Mesh":
    """The grid of an algorithm.

    Args:
        choices: the lengths and names of its axes.
        devices: in the order of rows of the torus.
        program: says the order of devices.
        topology: of the torus; the places of an order are those of its coordinates.
    """
    from jax.sharding import Mesh

    placed = np.empty(len(devices), object)
    order = program.order
    where = places(order.by, topology).ravel() if order else range(len(devices))
    for device, place in zip(devices, where, strict=True):
        placed[place] = device
    return Mesh(placed.reshape(choices.grid), choices.axes)


def step_on(distributed: Distributed, mesh: "Mesh | AbstractMesh", dtype: str) -> tuple[Any, tuple[Any, ...]]:
    """The jitted program and its abstract arguments, with their layout on the grid."""
    import jax
    from jax.sharding import NamedSharding

    function = jax.jit(
        jax.shard_map(
            distributed.body, mesh=mesh, in_specs=distributed.specs, out_specs=distributed.result, check_vma=False
        )
    )
    types = distributed.types or (dtype,) * len(distributed.shapes)
    arguments = tuple(
        jax.ShapeDtypeStruct(shape, element, sharding=NamedSharding(mesh, spec))
        for shape, element, spec in zip(distributed.shapes, types, distributed.specs, strict=True)
    )
    return function, arguments


def run_on(distributed: Distributed, mesh: "Mesh") -> np.ndarray:
    """The result of a run in float32, in the order of the plain program."""
    import jax
    from jax.sharding import NamedSharding

    function, _ = step_on(distributed, mesh, "float32")
    arguments = [
        jax.device_put(array, NamedSharding(mesh, spec))
        for array, spec in zip(distributed.inputs(), distributed.specs, strict=True)
    ]
    return distributed.restored(np.asarray(function(*arguments)))
