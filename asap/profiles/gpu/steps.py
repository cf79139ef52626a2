"""The marked steps of a GPU run: how long each took, and what its time went to.

A kernel belongs to the step in which the host launched it.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asap.profiles.cpu import MS_PER_PS, PS_PER_NS, Mark, origin_of
from asap.profiles.totals import HOST
from asap.profiles.xplane.columns import Integers, covered
from asap.profiles.xplane.planes import Plane
from asap.profiles.xprof.tables import StepRow

_LAUNCH = "correlation_id"


class Events(NamedTuple):
    """What ran on a GPU, in picoseconds since the epoch of the file: its launch, and whether it copies from or to the
    host, and whether only to it."""

    start: Integers
    end: Integers
    launch: Integers
    is_copy: NDArray[np.bool_]
    is_input: NDArray[np.bool_]

    def launched_by(self, launches: Integers) -> "Events":
        """Those of these launches."""
        rows = np.isin(self.launch, launches)
        start, end, launch, is_copy, is_input = self
        return Events(start[rows], end[rows], launch[rows], is_copy[rows], is_input[rows])


def step_rows(marks: Sequence[Mark], host: Sequence[Plane], devices: Sequence[Events]) -> dict[int, StepRow]:
    """The steps that were marked and launched something, by their number.

    A step lasts from the first event of a device to its last, or as its mark where that contains them.

    Args:
        marks: in their order.
        host: its planes.
        devices: of that host, those that ran anything.
    """
    plane = next((plane for plane in host if plane.name == HOST), None)
    if not marks or plane is None:
        return {}
    number, begin = _launches(plane)
    rows = {}
    for mark in marks:
        first, last = (origin_of(plane) * PS_PER_NS + moment for moment in (mark.start, mark.end))
        mine = number[(begin >= first) & (begin < last)]
        found = [ran for device in devices if len((ran := device.launched_by(mine)).start)]
        if found:
            rows[mark.number] = _row(first, last, found)
    return rows


def _launches(plane: Plane) -> tuple[Integers, Integers]:
    """Number and start of each launch."""
    parts = []
    for line in plane.lines:
        events = line.events((_LAUNCH,))
        known, number = events.column(_LAUNCH)
        parts.append((number[known], line.timestamp_ns * PS_PER_NS + events.offset[known]))
    number, begin = map(np.concatenate, zip(*parts, strict=True))
    return number, begin


def _row(marked: int, until: int, devices: Sequence[Events]) -> StepRow:
    """The device works where anything runs but copies from and to the host; an input is waited for beside no work."""
    first, last = max(((int(s.start.min()), int(s.end.max())) for s in devices), key=lambda each: each[1] - each[0])
    if marked <= first and last <= until:
        first, last = marked, until
    works = fmean(covered(each.start[~each.is_copy], each.end[~each.is_copy]) for each in devices)
    inputs = [each.is_input | ~each.is_copy for each in devices]
    both = fmean(covered(each.start[rows], each.end[rows]) for each, rows in zip(devices, inputs, strict=True))
    step, compute, infeed = (MS_PER_PS * time for time in (last - first, works, both - works))
    return StepRow(stepTimeMs=step, deviceComputeTimeMs=compute, infeedTimeMs=infeed)
