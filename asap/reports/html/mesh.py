"""How the mesh of a plan lies on the chips of a slice: with whom one chip communicates over each mesh axis."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from asap.hardware import Slice
from asap.plans import Plan
from asap.plans.axes import AXES, MEANINGS, Axis
from asap.plans.torus import physical_layout, split_axes
from asap.reports import phrases
from asap.reports.analysis import Analysis

MOST_CHIPS = 1024
CELL = 12
"""Side of a chip in the drawing, with its gap."""
_PLANE_GAP = 10
_PLANES = 4
"""Planes of a three-dimensional slice that are drawn beside each other."""


@dataclass(frozen=True)
class ChipCell:
    """A chip: where it is drawn, and over which axis the first chip meets it (``self``, an axis or ``far``)."""

    x: int
    y: int
    peer: str


@dataclass(frozen=True)
class MeshPanel:
    """One plan on the slice: its chips, and for each physical axis what lies on it."""

    title: str
    plan: str
    cells: tuple[ChipCell, ...]
    width: int
    height: int
    lines: tuple[str, ...]
    axes: tuple[tuple[str, str], ...]


def mesh_panels(analysis: Analysis, hardware: Slice | None) -> list[MeshPanel]:
    """A panel for the plan that runs and one for each proposal; none where there is no torus."""
    if hardware is None or not hardware.topology:
        return []
    plans = [(phrases.baseline(analysis), analysis.experiment.plan)] if analysis.experiment.plan else []
    plans += [(f"proposal {proposal.rank}", proposal.plan) for proposal in analysis.proposals]
    return [_panel(title, plan, hardware, hardware.topology) for title, plan in plans if plan is not None]


def _panel(title: str, plan: Plan, hardware: Slice, topology: tuple[int, ...]) -> MeshPanel:
    layout = physical_layout(plan.ici, topology)
    columns, rows, planes = (*topology, 1, 1)[:3]
    used = [axis for axis in get_args(Axis) if getattr(plan.ici, axis) > 1]
    return MeshPanel(
        title=title,
        plan=str(plan),
        cells=tuple(_cells(topology, layout)) if math.prod(topology) <= MOST_CHIPS else (),
        width=_extent(min(planes, _PLANES), columns),
        height=_extent(math.ceil(planes / _PLANES), rows),
        lines=tuple(_lines(plan, hardware, topology, layout)),
        axes=tuple((axis, f"{axis} {getattr(plan.ici, axis)} ({MEANINGS[axis]})") for axis in used),
    )


def _cells(topology: tuple[int, ...], layout: tuple[tuple[tuple[str, int], ...], ...]) -> Iterator[ChipCell]:
    columns, rows, _ = (*topology, 1, 1)[:3]
    for place in itertools.product(*map(range, topology)):
        column, row, plane = (*place, 0, 0)[:3]
        down, right = divmod(plane, _PLANES)
        x, y = right * (columns * CELL + _PLANE_GAP), down * (rows * CELL + _PLANE_GAP)
        yield ChipCell(x + column * CELL, y + row * CELL, _peer(place, topology, layout))


def _extent(planes: int, cells: int) -> int:
    return planes * (cells * CELL + _PLANE_GAP) - _PLANE_GAP


def _peer(place: tuple[int, ...], topology: tuple[int, ...], layout: tuple[tuple[tuple[str, int], ...], ...]) -> str:
    """The one axis along which a chip differs from the first; the part of a physical axis named first is outermost."""
    moved: set[str] = set()
    for at, length, lying in zip(place, topology, layout, strict=True):
        stride = length
        for axis, degree in lying:
            stride //= degree
            digit, at = divmod(at, stride)
            moved |= {axis} if digit else set()
        moved |= {"far"} if at else set()
    return "self" if not moved else moved.pop() if len(moved) == 1 else "far"


def _lines(
    plan: Plan, hardware: Slice, topology: tuple[int, ...], layout: tuple[tuple[tuple[str, int], ...], ...]
) -> Iterator[str]:
    for name, length, wraps, lying in zip("XYZ", topology, hardware.wraps, layout, strict=False):
        held = " × ".join(f"{axis} {degree}" for axis, degree in lying) or "nothing"
        yield f"{name}, {'ring' if wraps else 'line'} of {length}: {held}"
    if shared := split_axes(plan.ici, topology):
        names = ", ".join(axis for axis in AXES if axis in shared)
        yield f"Shares a physical axis, in one possible order: {names}"
    if str(plan.dcn):
        yield f"Between slices: {plan.dcn}"
