"""The marked steps of a GPU run: how long each took, and what its time went to.

A kernel belongs to the step in which the host launched it.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asap.profiles.cpu import MS_PER_PS, PS_PER_NS, STEP, Mark, marks_of, orderly_marks, origin_of, settled
from asap.profiles.totals import HOST
from asap.profiles.xplane.columns import Integers, covered
from asap.profiles.xplane.planes import Plane
from asap.profiles.xprof.tables import StepRow

STREAM, LAUNCH = "Stream #", "correlation_id"


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


class Launches(NamedTuple):
    """The steps that the training loop of a host marked, and number and start of each launch, in picoseconds after
    ``origin``, the first event of the host in picoseconds since the epoch of the file."""

    marks: Sequence[Mark]
    number: Integers
    start: Integers
    origin: int

    def settled(self, planes: Sequence[Plane], gpus: Sequence[Plane]) -> "Launches":
        """Without those that hold the start-up of the job; a device counts from what was launched afterwards."""
        marks = settled(planes, self.marks)
        if len(marks) < len(self.marks):
            later = self.number[self.start >= marks[0].start]
            for plane in gpus:
                lines = [line.events((LAUNCH,)) for line in plane.lines if line.name.startswith(STREAM)]
                mine = [events.start_ns[np.isin(events.column(LAUNCH).value, later)] for events in lines]
                plane.since_ns = int(min((each.min() for each in mine if len(each)), default=plane.since_ns))
        return self._replace(marks=marks)


def read_launches(planes: Sequence[Plane]) -> Launches | None:
    """What a host marked and launched; nothing without marks, and None where their order cannot be told."""
    found: list[tuple[Integers, Integers]] = []
    marks: list[Mark] = []
    origin = 0
    for plane in (plane for plane in planes if plane.name == HOST and STEP in plane.stat_ids):
        origin = origin_of(plane) * PS_PER_NS
        for line in plane.lines:
            events = line.events((STEP, LAUNCH))
            start = line.timestamp_ns * PS_PER_NS - origin + events.offset
            known, number = events.column(LAUNCH)
            marks += marks_of(events, start)
            found.append((number[known], start[known]))
    steps = orderly_marks(marks)
    if steps is None:
        return None
    none = np.empty(0, dtype=np.int64)
    number, begin = map(np.concatenate, zip(*(found or [(none, none)]), strict=True))
    return Launches(steps, number, begin, origin)


def step_rows(launches: Launches, devices: Sequence[Events]) -> dict[int, StepRow]:
    """The steps that were marked and launched something, by their number.

    A step lasts from the first event of a device to its last, or as its mark where that contains them.

    Args:
        launches: of the host.
        devices: of that host, those that ran anything.
    """
    rows = {}
    for mark in launches.marks:
        mine = launches.number[(launches.start >= mark.start) & (launches.start < mark.end)]
        found = [ran for device in devices if len((ran := device.launched_by(mine)).start)]
        if found:
            rows[mark.number] = _row(launches.origin + mark.start, launches.origin + mark.end, found)
    return rows


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
