"""Routes on a torus: the links that a message passes."""

from collections import Counter
from collections.abc import Iterable, Iterator

from asap.hardware import Slice

Coordinates = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]
Link = tuple[Coordinates, int, int]
"""The chip that it leaves, the torus axis, and the direction: 1 or -1."""
TorusDirection = tuple[int, int]
"""A torus axis and the direction along it, 1 or -1; the network between slices is :data:`NETWORK`."""
NETWORK: TorusDirection = (-1, 0)


def route(hardware: Slice, source: Coordinates, target: Coordinates) -> Iterator[Link]:
    """Links from one chip to another: one axis after the other, the shorter way around (dimension-order routing)."""
    position = list(source)
    for axis, length in enumerate(hardware.topology or ()):
        distance = (target[axis] - position[axis]) % length
        forward = distance <= length - distance if hardware.wraps[axis] else target[axis] > position[axis]
        step = 1 if forward else -1
        while position[axis] != target[axis]:
            yield (tuple(position), axis, step)
            position[axis] = (position[axis] + step) % length


def busiest_load(links: Iterable[Link]) -> int:
    """Messages over the busiest link."""
    return max(Counter(links).values(), default=0)
