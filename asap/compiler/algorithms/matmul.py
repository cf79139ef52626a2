"""What products of matrices share: operands, the plain product, blocks, panels, shifts along an axis."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from asap.compiler.algorithms.choices import Choices
from asap.mapping.device_order import places
from asap.mapping.language.program import Program

if TYPE_CHECKING:
    from jax import Array
    from jax.sharding import AbstractMesh, Mesh, PartitionSpec

    from asap.compiler.algorithms.choices import Choices


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
