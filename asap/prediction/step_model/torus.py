"""Over how much of a torus the collectives of a mesh axis spread.

JAX lays the fastest axes of a mesh first, on whole axes of the torus where it can, and splits one otherwise, with the
faster mesh axis on neighbouring chips (``jax.experimental.mesh_utils``). XLA sends over all axes of a box at once.
Where chips of a group have others between them it forms one ring, and the rings of all groups share the links: its
programs name the strategy, ``StrategyND`` or ``StrategyRing``.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asap.prediction.step_model.inputs import HardwareInputs, Number, anywhere, select

Sides = tuple[int, ...]


class _Side(NamedTuple):
    """One axis of the torus: its length, the links over which a ring along it sends at once, and the chips that faster
    mesh axes take of it."""

    length: int
    links: float
    taken: int = 1


class _LinksOfDivisors(NamedTuple):
    """Links of all groups of one torus whose members, and devices between neighbours, divide its chips."""

    place: NDArray[np.int64]
    """Of each number of chips, its row and column in the table; -1 for what does not divide them."""
    links: NDArray[np.float64]
    """By members and devices between neighbours; 0 for what no mesh has, and in the last row and column."""


def links_of(machine: HardwareInputs, members: Number, inner: Number) -> Number:
    """Links over which each device of a group of ``members`` sends at once, ``inner`` devices between neighbours; 1
    where there is no torus."""
    sides, links = (
        (machine.torus_x, machine.torus_y, machine.torus_z),
        (machine.links_x, machine.links_y, machine.links_z),
    )
    if not anywhere(machine.tpu):
        return 1.0
    one = [side for side in (*sides, *links) if isinstance(side, float)]
    found = _on_one_torus(one, members, inner) if len(one) == 6 else _case_by_case(members, inner, *sides, *links)
    return select(machine.tpu, found, 1.0)


def _on_one_torus(torus: Sequence[float], members: Number, inner: Number) -> Number:
    place, links = _links_of_divisors(*torus)
    row, column = (place.take(np.asarray(each, dtype=np.int64), mode="clip") for each in (members, inner))
    found = links[row, column]
    return found if found.all() else np.where(found, found, _case_by_case(members, inner, *torus))


@lru_cache(maxsize=256)
def _links_of_divisors(x: float, y: float, z: float, *links: float) -> _LinksOfDivisors:
    chips = round(x * y * z)
    divisors = [count for count in range(1, chips + 1) if chips % count == 0]
    table = np.zeros((len(divisors) + 1, len(divisors) + 1))
    place = np.full(chips + 2, -1)
    place[divisors] = np.arange(len(divisors))
    for row, members in enumerate(divisors):
        for column, inner in enumerate(divisors):
            if chips % (members * inner) == 0:
                table[row, column] = _links(members, inner, x, y, z, *links)
    return _LinksOfDivisors(place, table)


def _case_by_case(*cases: Number) -> NDArray[np.float64]:
    """The links of each case; equal cases are looked at once."""
    code = _codes(cases)
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    columns = [np.broadcast_to(each, code.shape).ravel()[first].tolist() for each in cases]
    return np.array([_links(*case) for case in zip(*columns, strict=True)])[place.reshape(code.shape)]


def _codes(cases: Sequence[Number]) -> NDArray[np.int64]:
    """A number for each case, the same for equal ones."""
    code = np.zeros(np.broadcast_shapes(*map(np.shape, cases)), dtype=np.int64)
    for each in cases:
        if np.size(each) > 1:
            whole = np.asarray(each).astype(np.int64)
            code = code * (whole.max() + 1) + whole
    return code


@lru_cache(maxsize=65_536)
def _links(members: float, inner: float, x: float, y: float, z: float, *links: float) -> float:
    torus = [_Side(int(length), count) for length, count in zip((x, y, z), links, strict=True)]
    faster = _laid(torus, round(inner))
    split = [side._replace(taken=part) for side, part in zip(torus, faster, strict=True)]
    parts = _laid(split, round(members))
    used = [(side, part) for side, part in zip(split, parts, strict=True) if part > 1]
    between = max((side.taken for side, _ in used), default=1)
    if between == 1:
        return sum(side.links if part == side.length else 1.0 for side, part in used) or max(links)
    side, part = used[0]
    goes_round = len(used) > 1 or (side.links > 1 and part > 2 and part * side.taken == side.length)
    return (2.0 if goes_round else 1.0) / between


def _laid(torus: list[_Side], members: int) -> Sides:
    """Chips along each axis of the torus that so many take, as JAX prefers: whole axes, many of them, then axes that
    are split already. What no split gives exactly takes the axes one after the other."""
    ways = list(_ways([side.length // side.taken for side in torus], members))
    if not ways:
        return _in_turn(torus, members)

    def preference(way: Sides) -> tuple[int, int, int, Sides]:
        whole = [part for part, side in zip(way, torus, strict=True) if part == side.length]
        shared = prod(part for part, side in zip(way, torus, strict=True) if side.taken > 1)
        return prod(whole), sum(part > 1 for part in whole), shared, way

    return max(ways, key=preference)


def _ways(room: list[int], members: int) -> Iterator[Sides]:
    if not room:
        if members == 1:
            yield ()
        return
    for part in range(1, room[0] + 1):
        if room[0] % part == 0 and members % part == 0:
            yield from ((part, *rest) for rest in _ways(room[1:], members // part))


def _in_turn(torus: list[_Side], members: int) -> Sides:
    parts = []
    for side in torus:
        part = max(min(side.length // side.taken, members), 1)
        members = -(-members // part)
        parts.append(part)
    return tuple(parts)
