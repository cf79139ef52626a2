"""The decisions of the distributed algorithms: their grid, and which settings mean anything to them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from asap.hardware import Slice
from asap.mapping.language.feedback import Code, Feedback, delete_line, feedback, replace
from asap.mapping.language.program import Keyword, Program, Setting
from asap.mapping.target import Target


@dataclass(frozen=True)
class Algorithm:
    """Axes of the grid, those that have to be equal, and the settings that the algorithm has."""

    grid: tuple[str, ...]
    equal: tuple[int, ...] = ()
    settings: tuple[str, ...] = ()


ALGORITHMS = {
    "cannon": Algorithm(("rows", "columns"), (0, 1), ("overlap",)),
    "summa": Algorithm(("rows", "columns"), (), ("stationary", "panels", "overlap")),
    "pumma": Algorithm(("rows", "columns"), (0, 1), ("overlap",)),
    "johnson": Algorithm(("m", "n", "k"), (0, 1, 2), ("panels", "overlap")),
    "solomonik": Algorithm(("copies", "rows", "columns"), (1, 2), ("replication", "overlap")),
    "cosma": Algorithm(("m", "n", "k"), (), ("panels", "overlap")),
    "stencil": Algorithm(("rows", "columns"), (), ("overlap",)),
    "circuit": Algorithm(("pieces",), (), ("overlap",)),
    "pennant": Algorithm(("pieces",), (), ("overlap",)),
}
"""The nine benchmarks of the Agent-System Interface (arXiv:2410.15625)."""

_SETTINGS: tuple[Keyword, ...] = ("grid", "stationary", "panels", "replication", "overlap")


def check_algorithm(program: Program, target: Target | None, hardware: Slice | None) -> Iterator[Feedback]:
    """Settings without an algorithm that has them, and grids that it cannot use."""
    chosen = program.setting("algorithm")
    said = [setting for keyword in _SETTINGS if (setting := program.setting(keyword)) is not None]
    if target is not None:
        for setting in (*([chosen] if chosen else []), *said):
            yield _not_applicable(setting, f"a training step of {target.name} has no {setting.keyword}")
        return
    if chosen is None:
        for setting in said:
            yield _not_applicable(setting, f"{setting.keyword} says nothing without an algorithm")
        return
    name = chosen.word
    for setting in said:
        if setting.keyword not in ("grid", *ALGORITHMS[name].settings):
            yield _not_applicable(setting, f"{name} has no {setting.keyword}")
    grid = program.setting("grid")
    if grid is not None:
        yield from _check_grid(grid, name, hardware)
        yield from _check_replication(program, grid, name)


def _check_grid(setting: Setting, name: str, hardware: Slice | None) -> Iterator[Feedback]:
    algorithm, sides = ALGORITHMS[name], _sides(setting)
    at = setting.counts[0].at.to(setting.counts[-1].at)
    lengths = ",".join(map(str, sides))
    devices = hardware.devices_per_slice if hardware else math.prod(sides)
    right = _grid(algorithm, devices)
    repair = replace(at, ",".join(map(str, right))) if right else delete_line(setting.at.line)
    advice = f"write grid ({','.join(map(str, right))})" if right else f"{name} cannot use {devices} devices"
    if len(sides) != len(algorithm.grid):
        found = f"the grid of {name} has {len(algorithm.grid)} axes ({', '.join(algorithm.grid)}), not {len(sides)}"
        yield feedback(Code.GRID_PRODUCT, at, found, advice, repair=repair)
    elif len({sides[axis] for axis in algorithm.equal}) > 1:
        equal = " and ".join(algorithm.grid[axis] for axis in algorithm.equal)
        found = f"{name} needs as many {equal}, and the grid is ({lengths})"
        yield feedback(Code.NEEDS_SQUARE, at, found, advice, repair=repair)
    elif math.prod(sides) != devices:
        found = f"the grid ({lengths}) has {math.prod(sides)} places, and the machine {devices} devices"
        yield feedback(Code.GRID_PRODUCT, at, found, advice, repair=repair)


def _check_replication(program: Program, grid: Setting, name: str) -> Iterator[Feedback]:
    sides, copies = _sides(grid), program.setting("replication")
    if name != "solomonik" or len(sides) != 3:
        return
    if copies is not None and copies.counts[0].value != sides[0]:
        found = f"the grid has {sides[0]} copies, and this line says {copies.counts[0].value}"
        yield feedback(
            Code.CONTRADICTION, copies.at, found, f"write replication {sides[0]}", other=grid.at,
            repair=replace(copies.counts[0].at, str(sides[0])),
        )  # fmt: skip
    if sides[1] % sides[0]:
        at = grid.counts[0].at.to(grid.counts[-1].at)
        found = f"{sides[1]} rows do not divide over {sides[0]} copies"
        advice = "use fewer copies and more rows"
        yield feedback(Code.NOT_DIVISIBLE, at, found, advice, repair=delete_line(grid.at.line))


def _grid(algorithm: Algorithm, devices: int) -> tuple[int, ...] | None:
    """The most even grid of some devices that an algorithm can use."""
    axes, equal = len(algorithm.grid), len(algorithm.equal)
    if equal:
        for side in range(math.isqrt(devices), 0, -1):
            rest, left = divmod(devices, side**equal)
            if not left and (axes > equal or rest == 1) and (axes == equal or side % rest == 0):
                return (rest,) * (axes - equal) + (side,) * equal
        return None
    found: list[int] = []
    for missing in range(axes, 0, -1):
        near = round(devices ** (1 / missing))
        side = min((s for s in range(1, min(devices, 100_000) + 1) if devices % s == 0), key=lambda s: abs(s - near))
        found.append(side)
        devices //= side
    return (*found[:-1], found[-1] * devices)


def _not_applicable(setting: Setting, found: str) -> Feedback:
    return feedback(Code.NOT_APPLICABLE, setting.at, found, "leave the line out", repair=delete_line(setting.at.line))


def _sides(setting: Setting) -> tuple[int, ...]:
    return tuple(count.value for count in setting.counts)
