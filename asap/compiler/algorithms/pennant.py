"""The communication of Pennant (Ferenbaugh, 2015): corners gather, forces scatter, and points on borders are summed.

Zones are quadrilaterals of a mesh whose points are numbered at random, so every access goes through an index. Pieces
are rectangles of zones; a point on a border has a copy in every piece that it touches.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from asap.compiler.algorithms.choices import Choices
from asap.compiler.algorithms.matmul import Distributed, Problem, in_turn, shifted

if TYPE_CHECKING:
    from jax import Array


_STIFFNESS = 0.05


def start_of(side: int) -> np.ndarray:
    """Points of ``side`` by ``side`` zones at the start: a grid of unit cells, each point moved a little."""
    draw = np.random.default_rng(0)
    place = np.stack(np.meshgrid(*(np.arange(side + 1, dtype=np.float32),) * 2, indexing="ij"), -1)
    return place + draw.uniform(-0.2, 0.2, place.shape).astype(np.float32)


def corners(numbers: np.ndarray) -> np.ndarray:
    """Numbers of the four corners of each zone, counter-clockwise, from those of the points."""
    around = (numbers[:-1, :-1], numbers[1:, :-1], numbers[1:, 1:], numbers[:-1, 1:])
    return np.stack([each.ravel() for each in around]).astype(np.int32)


def zone_forces(corner: list[tuple[Any, Any]]) -> tuple[Any, list[tuple[Any, Any]]]:
    """Area of each zone, and the force on each corner: pressure along the normals of its two sides."""
    area: Any = 0.0
    for (x, y), (next_x, next_y) in zip(corner, (*corner[1:], corner[0]), strict=True):
        area = area + (x * next_y - next_x * y) / 2
    pressure = _STIFFNESS * (1 / area)
    forces = []
    for index in range(4):
        (before_x, before_y), (after_x, after_y) = corner[index - 1], corner[(index + 1) % 4]
        forces.append((pressure * (after_y - before_y) / 2, pressure * (before_x - after_x) / 2))
    return area, forces


def plain_steps(side: int, steps: int) -> np.ndarray:
    """The points after so many steps, without pieces."""
    place = start_of(side).astype(np.float64).reshape(-1, 2)
    corner = corners(np.arange((side + 1) ** 2).reshape(side + 1, side + 1))
    speed = np.zeros_like(place)
    for _ in range(steps):
        size, forces = zone_forces([(place[each, 0], place[each, 1]) for each in corner])
        total = np.zeros_like(place)
        for each, force in zip(corner, forces, strict=True):
            np.add.at(total, each, np.stack(force, 1))
        step = size.min()
        speed = speed + step * total
        place = place + step * speed
    return place.reshape(side + 1, side + 1, 2)


_RIMS = 4
"""Borders of a piece: above, below, left, right."""


def pennant(choices: Choices, problem: Problem) -> Distributed:
    """``steps`` steps on ``side`` by ``side`` zones, on a grid of rows by columns.

    The layout of ``points`` is a point after the other, or by column: all x, then all y.
    """
    from jax.sharding import PartitionSpec

    rows, columns = choices.grid
    height, width = problem["side"] // rows, problem["side"] // columns
    points, zones = (height + 1) * (width + 1), height * width
    longest = max(height, width) + 1
    field = (2, points) if "points" in choices.by_column else (points, 2)
    spec = PartitionSpec(("rows", "columns"))
    pieces = rows * columns
    return Distributed(
        partial(_body, choices, problem),
        ((pieces, *field), (pieces, 4, zones), (pieces, _RIMS, longest)),
        (spec,) * 3,
        spec,
        partial(_inputs, choices, problem["side"]),
        lambda: plain_steps(problem["side"], problem["steps"]),
        partial(_restored, choices, problem["side"]),
        types=("float32", "int32", "int32"),
    )


def _body(choices: Choices, problem: Problem, place: "Array", corner: "Array", rims: "Array") -> "Array":
    import jax.numpy as jnp
    from jax import lax

    by_column = "points" in choices.by_column
    place, corner, rims = place[0], corner[0], rims[0]
    speed = jnp.zeros_like(place)
    for _ in range(problem["steps"]):
        x, y = (place[0], place[1]) if by_column else (place[:, 0], place[:, 1])
        gathered = [(x[corner[i]], y[corner[i]]) for i in range(4)]
        size, forces = zone_forces(gathered)
        step = lax.pmin(jnp.min(size), ("rows", "columns"))
        (step, *_) = in_turn(choices, step, *(part for force in forces for part in force))
        total = jnp.zeros_like(place)
        for i in range(4):
            each = jnp.stack(forces[i], 0 if by_column else 1)
            total = total.at[:, corner[i]].add(each) if by_column else total.at[corner[i]].add(each)
        total = _summed(choices, problem, total, rims)
        speed = speed + step * total
        place = place + step * speed
    return place[None]


def _summed(choices: Choices, problem: Problem, total: "Array", rims: "Array") -> "Array":
    """Sums over all copies of a point: first across borders above and below, then across those at the sides."""
    rows, columns = choices.grid
    by_column = "points" in choices.by_column
    lengths = (problem["side"] // columns + 1, problem["side"] // rows + 1)
    for dimension, (axis, length) in enumerate(zip(choices.axes, choices.grid, strict=True)):
        near, far = (rims[2 * dimension + end, : lengths[dimension]] for end in (0, 1))
        first, last = (total[:, rim] if by_column else total[rim] for rim in (near, far))
        before, after = _neighbours(choices, axis, length, first, last)
        if by_column:
            total = total.at[:, near].add(before).at[:, far].add(after)
        else:
            total = total.at[near].add(before).at[far].add(after)
    return total


def _neighbours(choices: Choices, axis: str, length: int, first: "Array", last: "Array") -> "tuple[Array, Array]":
    """The last border of the piece before, and the first of the one after; zeros at the ends."""
    import jax.numpy as jnp
    from jax import lax

    if choices.exchange == "permute":
        before = shifted(last, axis, length, -1, around=False)
        before, first = in_turn(choices, before, first)
        return before, shifted(first, axis, length, 1, around=False)
    here = lax.axis_index(axis)
    if choices.exchange == "gather":
        both = lax.all_gather(jnp.stack((first, last)), axis)
    else:
        both = lax.psum(jnp.zeros((length, 2, *first.shape), first.dtype).at[here].set(jnp.stack((first, last))), axis)
    before = jnp.where(here > 0, both[(here - 1) % length, 1], 0.0)
    return before, jnp.where(here < length - 1, both[(here + 1) % length, 0], 0.0)


def _numbering(choices: Choices, side: int) -> np.ndarray:
    """The number of each point of a piece, drawn at random; as an array over rows and columns of points."""
    height, width = (side // length for length in choices.grid)
    return np.random.default_rng(1).permutation((height + 1) * (width + 1)).reshape(height + 1, width + 1)


def _inputs(choices: Choices, side: int) -> tuple[np.ndarray, ...]:
    rows, columns = choices.grid
    height, width = side // rows, side // columns
    numbers, whole, pieces = _numbering(choices, side), start_of(side), rows * columns
    places = np.empty((pieces, numbers.size, 2), np.float32)
    for piece in range(pieces):
        row, column = (index * length for index, length in zip(divmod(piece, columns), (height, width), strict=True))
        places[piece, numbers] = whole[row : row + height + 1, column : column + width + 1]
    rims = np.zeros((_RIMS, max(height, width) + 1), np.int32)
    for index, rim in enumerate((numbers[0], numbers[-1], numbers[:, 0], numbers[:, -1])):
        rims[index, : len(rim)] = rim
    found = places.swapaxes(1, 2) if "points" in choices.by_column else places
    copies = (pieces, 1, 1)
    return found, np.tile(corners(numbers)[None], copies), np.tile(rims[None], copies)


def _restored(choices: Choices, side: int, found: np.ndarray) -> np.ndarray:
    """Points of all pieces as an array over rows and columns; of several copies the mean."""
    rows, columns = choices.grid
    height, width = side // rows, side // columns
    numbers = _numbering(choices, side)
    places = found.swapaxes(1, 2) if "points" in choices.by_column else found
    total, copies = np.zeros((side + 1, side + 1, 2)), np.zeros((side + 1, side + 1, 1))
    for piece in range(rows * columns):
        row, column = (index * length for index, length in zip(divmod(piece, columns), (height, width), strict=True))
        part = slice(row, row + height + 1), slice(column, column + width + 1)
        total[part] += places[piece, numbers]
        copies[part] += 1
    return total / copies
