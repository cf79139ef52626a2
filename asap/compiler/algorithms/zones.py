"""Zones with four corners: their size, the forces on their corners, and the plain program on one device."""

from typing import Any

import numpy as np

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
