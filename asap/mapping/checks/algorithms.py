"""The decisions of the distributed algorithms: their grid, and which settings mean anything to them."""

import math
from collections.abc import Iterator

from asap.hardware import Slice
from asap.mapping.algorithm import ALGORITHMS, textbook_grid
from asap.mapping.coverage import Target
from asap.mapping.language.feedback import Code, Feedback, delete_line, feedback, nearest, replace
from asap.mapping.language.program import Keyword, Program, Setting, TensorSetting

_SETTINGS: tuple[Keyword, ...] = (
    "grid", "exchange", "stationary", "panels", "replication", "halo", "overlap",
)  # fmt: skip
_OF_ALL = ("grid", "overlap")
_LARGEST = 2**16
"""Devices of a machine for which a grid is looked for."""


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
        if setting.keyword not in (*_OF_ALL, *ALGORITHMS[name].settings, "exchange"):
            yield _not_applicable(setting, f"{name} has no {setting.keyword}")
    yield from _check_exchange(program, name)
    yield from _check_arrays(program, name)
    grid = program.setting("grid")
    devices = hardware.devices_per_slice if hardware else None
    if grid is not None:
        yield from _check_grid(grid, program, name, devices)
        yield from _check_replication(program, grid, name)


def _check_exchange(program: Program, name: str) -> Iterator[Feedback]:
    setting, known = program.setting("exchange"), ALGORITHMS[name].exchanges
    if setting is None or setting.word in known:
        return
    if not known:
        yield _not_applicable(setting, f"{name} has one way to exchange blocks")
        return
    assert not isinstance(setting.value, tuple)
    found = f"{name} does not exchange by {setting.word}"
    advice = f"write {' or '.join(known)}"
    yield feedback(Code.NOT_APPLICABLE, setting.value.at, found, advice, repair=replace(setting.value.at, known[0]))


def _check_arrays(program: Program, name: str) -> Iterator[Feedback]:
    """Lines on single tensors: only the layout of some arrays can be chosen."""
    known = ALGORITHMS[name].arrays
    for line in program.decisions:
        if not isinstance(line, TensorSetting):
            continue
        if line.keyword != "layout":
            found = f"{name} has no {line.keyword}"
            yield feedback(Code.NOT_APPLICABLE, line.at, found, "leave the line out", repair=delete_line(line.at.line))
            continue
        for wrong in (word for word in line.names if word.text not in known):
            found = f"{name} has no array {wrong.text} whose layout can be chosen"
            near = nearest(wrong.text, known) or next(iter(known), None)
            advice, repair = (
                (f"did you mean {near}?", replace(wrong.at, near)) if near else ("leave the line out", None)
            )
            yield feedback(Code.NO_SUCH_TENSOR, wrong.at, found, advice, repair=repair or delete_line(line.at.line))


def _check_grid(setting: Setting, program: Program, name: str, devices: int | None) -> Iterator[Feedback]:
    algorithm, sides = ALGORITHMS[name], _sides(setting)
    at = setting.counts[0].at.to(setting.counts[-1].at)
    lengths = ",".join(map(str, sides))
    devices = devices or math.prod(sides)
    exchange = "permute" if _shifts(program) else "gather"
    right = textbook_grid(name, devices, exchange) if devices <= _LARGEST else None
    repair = replace(at, ", ".join(map(str, right))) if right else delete_line(setting.at.line)
    advice = f"write grid ({', '.join(map(str, right))})" if right else f"{name} cannot use {devices} devices"
    if len(sides) != len(algorithm.grid):
        found = f"the grid of {name} has {len(algorithm.grid)} axes ({', '.join(algorithm.grid)}), not {len(sides)}"
        yield feedback(Code.GRID_PRODUCT, at, found, advice, repair=repair)
    elif math.prod(sides) != devices:
        found = f"the grid ({lengths}) has {math.prod(sides)} places, and the machine {devices} devices"
        yield feedback(Code.GRID_PRODUCT, at, found, advice, repair=repair)
    elif len({sides[axis] for axis in _equal(name, program)}) > 1:
        equal = " and ".join(algorithm.grid[axis] for axis in _equal(name, program))
        found = f"{name} needs as many {equal}, and the grid is ({lengths})"
        yield feedback(Code.NEEDS_SQUARE, at, found, advice, repair=repair)
    elif algorithm.even and right is not None and sorted(sides) != sorted(right):
        found = f"{name} needs a grid as near a cube as {devices} devices allow, and this one is ({lengths})"
        yield feedback(Code.NEEDS_SQUARE, at, found, advice, repair=repair)


def _equal(name: str, program: Program) -> tuple[int, ...]:
    """Axes that have to be of one length; of the 2.5D algorithm only for Cannon's shifts."""
    return (1, 2) if name == "solomonik" and _shifts(program) else ALGORITHMS[name].equal


def _shifts(program: Program) -> bool:
    exchange = program.setting("exchange")
    return exchange is None or exchange.word == "permute"


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
    if _shifts(program) and sides[1] == sides[2] and sides[1] % sides[0]:
        at = grid.counts[0].at.to(grid.counts[-1].at)
        found = f"{sides[1]} rows do not divide over {sides[0]} copies"
        advice = "use fewer copies and more rows, or exchange gather"
        yield feedback(Code.NOT_DIVISIBLE, at, found, advice, repair=delete_line(grid.at.line))


def _not_applicable(setting: Setting, found: str) -> Feedback:
    return feedback(Code.NOT_APPLICABLE, setting.at, found, "leave the line out", repair=delete_line(setting.at.line))


def _sides(setting: Setting) -> tuple[int, ...]:
    return tuple(count.value for count in setting.counts)
