"""The programs of a distributed algorithm on a machine: the options of each decision, freely joined or legal."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from asap.hardware import Slice
from asap.mapping.algorithm import ALGORITHMS, grids
from asap.mapping.check import check

_WALKS = ("row", "col", "fold")
_BLOCKS = ("block(2, 2)", "block(2, 1)", "block(4, 2)")


def orders(topology: tuple[int, ...]) -> tuple[str, ...]:
    """Orders of a torus that differ: walks and, on a flat one, blocks, a snake and a skew."""
    if len(topology) != 2:
        return _WALKS
    rows, columns = topology
    blocks = tuple(block for block in _BLOCKS if rows % int(block[6]) == 0 and columns % int(block[9]) == 0)
    snake = f"f(i, j) = i * {columns} + (i % 2 ? {columns - 1} - j : j)"
    return (*_WALKS, *blocks, snake, f"f(i, j) = i * {columns} + (i + j) % {columns}")


ORDERS = orders((4, 4))
"""Those of the torus that the tables are for."""

NO_ORDERS = ("f(i, j) = i * 4 + 2 * j", "f(i, j) = i + j", "block(3, 2)")
"""What looks like an order of that torus and is none."""

_SIDES = (1, 2, 4, 8, 16)
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "stationary": ("A", "B", "C"),
    "panels": ("1", "4"),
    "halo": ("1", "2", "4"),
    "replication": (),
}

_WITH_OVERLAP = ("cannon", "pumma")
"""Algorithms of one grid. Elsewhere every transfer may overlap, so that a table takes minutes and not hours."""


@dataclass(frozen=True)
class AlgorithmSpace:
    """The decisions about an algorithm: keyword → its options. A configuration chooses one of each.

    Args:
        algorithm: its name.
        options: of each keyword, as the line says them.
    """

    algorithm: str
    options: Mapping[str, tuple[str, ...]]

    def text(self, chosen: Mapping[str, str]) -> str:
        """The program that makes these choices."""
        return f"algorithm {self.algorithm}\n" + "".join(f"{key} {chosen[key]}\n" for key in self.options)

    def choices(self) -> Iterator[dict[str, str]]:
        """Every way to choose."""
        for values in product(*self.options.values()):
            yield dict(zip(self.options, values, strict=True))


def raw_space(algorithm: str) -> AlgorithmSpace:
    """Every decision free of the others: grids of any product, orders that are none."""
    known = ALGORITHMS[algorithm]
    sides = product(_SIDES, repeat=len(known.grid)) if len(known.grid) > 1 else ((side,) for side in _SIDES)
    return AlgorithmSpace(algorithm, _options(algorithm, sides, (*ORDERS, *NO_ORDERS)))


def machine_space(algorithm: str, hardware: Slice) -> AlgorithmSpace:
    """Every decision with the options that a machine has; not all of them go together."""
    every = grids(len(ALGORITHMS[algorithm].grid), hardware.devices_per_slice)
    options = _options(algorithm, every, orders(hardware.topology or ()))
    return AlgorithmSpace(algorithm, {**options, "overlap": ("on", "off")})


def legal_space(algorithm: str, hardware: Slice) -> list[tuple[AlgorithmSpace, dict[str, str]]]:
    """Every choice that passes the checks on a machine."""
    space = AlgorithmSpace(
        algorithm, _options(algorithm, grids(len(ALGORITHMS[algorithm].grid), hardware.devices_per_slice), ORDERS)
    )
    return [(space, chosen) for chosen in space.choices() if not check(space.text(chosen), None, hardware).feedback]


def _options(algorithm: str, sides: "Iterator[tuple[int, ...]]", orders: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    known = ALGORITHMS[algorithm]
    options = {"grid": tuple(f"({', '.join(map(str, grid))})" for grid in sides), "order": orders}
    options |= {key: _OPTIONS[key] for key in known.settings if _OPTIONS[key]}
    if known.exchanges:
        options["exchange"] = known.exchanges
    options |= {f"layout {array}": ("row", "col") for array in known.arrays}
    return options | ({"overlap": ("on", "off")} if algorithm in _WITH_OVERLAP else {})
