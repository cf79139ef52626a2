"""The distributed algorithms that a program may choose, their grids, and the settings that each has."""

import math
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Algorithm:
    """What can be decided for an algorithm.

    Args:
        grid: names of the axes of its grid.
        equal: axes that have to be of one length.
        even: whether the grid has to be as near a cube as the machine allows.
        settings: keywords that say something to it, beside ``grid``, ``order`` and ``overlap``.
        exchanges: ways to exchange blocks or halos, the textbook's first.
        arrays: those whose layout may be chosen.
    """

    grid: tuple[str, ...]
    equal: tuple[int, ...] = ()
    even: bool = False
    settings: tuple[str, ...] = ()
    exchanges: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()


ALGORITHMS = {
    "cannon": Algorithm(("rows", "columns"), (0, 1)),
    "summa": Algorithm(("rows", "columns"), settings=("stationary", "panels")),
    "pumma": Algorithm(("rows", "columns"), (0, 1), exchanges=("permute", "reduce", "gather")),
    "johnson": Algorithm(("m", "n", "k"), even=True, settings=("panels",)),
    "solomonik": Algorithm(("copies", "rows", "columns"), settings=("replication",), exchanges=("permute", "gather")),
    "cosma": Algorithm(("m", "n", "k"), settings=("panels",)),
    "stencil": Algorithm(("rows", "columns"), settings=("halo",)),
    "circuit": Algorithm(("pieces",), exchanges=("gather", "all_to_all", "permute"), arrays=("segments",)),
    "pennant": Algorithm(("rows", "columns"), exchanges=("permute", "reduce", "gather"), arrays=("points",)),
}
"""The nine benchmarks of the Agent-System Interface (arXiv:2410.15625)."""


def grids(axes: int, devices: int) -> Iterator[tuple[int, ...]]:
    """Every grid of so many axes that has as many places as there are devices."""
    if axes == 1:
        yield (devices,)
        return
    for side in range(1, devices + 1):
        if devices % side == 0:
            yield from ((side, *rest) for rest in grids(axes - 1, devices // side))


def most_even_grid(algorithm: Algorithm, devices: int) -> tuple[int, ...] | None:
    """The most even grid of some devices that an algorithm can use, the longest side last."""
    usable = (grid for grid in grids(len(algorithm.grid), devices) if len({grid[a] for a in algorithm.equal}) < 2)
    return min(usable, key=lambda grid: (max(grid) / min(grid), grid), default=None)


def grid_of_copies(devices: int, shifts: bool) -> tuple[int, ...] | None:
    """The 2.5D algorithm's square layers with the fewest copies; for shifts as many as divide the rows."""
    for side in range(math.isqrt(devices), 0, -1):
        copies, rest = divmod(devices, side * side)
        if not rest and side % copies == 0:
            return copies, side, side
    return None if shifts else (1, *(most_even_grid(ALGORITHMS["summa"], devices) or (1, devices)))


def textbook_grid(name: str, devices: int, exchange: str) -> tuple[int, ...] | None:
    """The grid of an algorithm where no line says one; ``None`` if it cannot use that many devices."""
    if name == "solomonik":
        return grid_of_copies(devices, exchange == "permute")
    return most_even_grid(ALGORITHMS[name], devices)
