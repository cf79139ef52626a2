"""The events of a CPU profile, which is all that it has.

There are no device planes: operations lie on the threads of the host, with the number of their virtual device.
Control flow contains its body, so an operation's own time is its time without what it contains. The training loop marks
its steps on a thread of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from asap.profiles.hlo.program import DAMAGED, instructions_of
from asap.profiles.kpis import after_start_up, start_up
from asap.profiles.totals import HOST, PS, CpuInstruction, Total, Totals
from asap.profiles.xplane.columns import Integers, alike, covered, distinct, own_times
from asap.profiles.xplane.planes import PS_PER_NS, Events, Plane
from asap.profiles.xprof.converter import Conversion
from asap.profiles.xprof.tables import MemoryProfile, StepRow, Summary

_NAME, _DEVICE, _MODULE, _PROGRAM, _RUN = "hlo_op", "device_ordinal", "hlo_module", "program_id", "run_id"
_LOOKED_UP = 0.01
"""Share of the time from which it is worth a look where an operation comes from."""
STEP = "step_num"


@dataclass(frozen=True, eq=False)
class CpuWork:
    """Operations of one thread, ordered by start, in picoseconds after the first event of its host.

    ``modules`` and ``names`` are numbers that the plane resolves.
    """

    plane: Plane
    device: Integers
    run: Integers
    programs: Integers
    modules: Integers
    names: Integers
    start: Integers
    end: Integers

    @cached_property
    def name(self) -> Sequence[str]:
        """The name of each operation."""
        return [self.plane.text(number) for number in self.names.tolist()]

    def of_device(self, device: int) -> "CpuWork":
        """What it did of one virtual device."""
        return self.of(np.flatnonzero(self.device == device))

    def of(self, rows: Integers) -> "CpuWork":
        """Some of its operations."""
        columns = (self.device, self.run, self.programs, self.modules, self.names, self.start, self.end)
        return CpuWork(self.plane, *(column[rows] for column in columns))


class Mark(NamedTuple):
    """A step that the training loop marked, in picoseconds after the first event of its host."""

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class CpuEvents:
    """What the virtual devices of a host did; ``started`` says which steps the start-up of the job takes, left out."""

    work: tuple[CpuWork, ...]
    marks: tuple[Mark, ...] = ()
    started: str = ""

    @cached_property
    def runs(self) -> Mapping[tuple[int, str, int], tuple[int, int]]:
        """First and last picosecond of each run of each module: by device, module and number."""
        runs: dict[tuple[int, str, int], tuple[int, int]] = {}
        for work in self.work:
            order, lots = alike(work.device, work.modules, work.run)
            which = (column[order[lots]] for column in (work.device, work.modules, work.run))
            spans = np.minimum.reduceat(work.start[order], lots), np.maximum.reduceat(work.end[order], lots)
            for device, module, run, start, end in np.stack([*which, *spans], axis=1).tolist():
                key = (device, work.plane.text(module), run)
                first, last = runs.get(key, (start, end))
                runs[key] = (min(first, start), max(last, end))
        return runs

    def settled(self, planes: Sequence[Plane]) -> "CpuEvents":
        """Without the start-up of the job."""
        marks = settled(planes, self.marks)
        if not (left_out := len(self.marks) - len(marks)):
            return self
        after = (work.of(np.flatnonzero(work.start >= marks[0].start)) for work in self.work)
        said = after_start_up(left_out, len(self.marks))
        return CpuEvents(tuple(work for work in after if len(work.start)), tuple(marks), said)

    def summed(self, planes: Sequence[Plane]) -> Totals:
        """What all of it took; of what took long, the compiled programs on the planes tell where it comes from."""
        totals, times = Totals(), dict[tuple[int, str, str], Total]()
        for (_, module, _), (first, last) in self.runs.items():
            totals.modules[module].append(PS * (last - first))
        for work in self.work:
            order, lots = alike(work.programs, work.modules, work.names)
            own, counts = np.add.reduceat(own_times(work.start, work.end)[order], lots), np.diff([*lots, len(order)])
            which = (column[order[lots]] for column in (work.programs, work.modules, work.names))
            for program, module, name, time, count in np.stack([*which, own, counts], axis=1).tolist():
                key = (program, work.plane.text(module), work.plane.text(name))
                times[key] = times.get(key, Total()) + Total(PS * time, count)
        paths = _paths(times, planes)
        for (program, module, name), total in times.items():
            totals.operations[CpuInstruction(module, name, paths.get((program, name), ""))] += total
        for device in {device for work in self.work for device in distinct(work.device).tolist()}:
            mine = [work.of_device(device) for work in self.work]
            start, end = (np.concatenate([getattr(work, side) for work in mine]) for side in ("start", "end"))
            totals.virtual += 1
            totals.windows_s += PS * int(end.max() - start.min())
            totals.busy_s += PS * covered(start, end)
        return totals


def _paths(times: Mapping[tuple[int, str, str], Total], planes: Sequence[Plane]) -> dict[tuple[int, str], str]:
    """The paths of the user's operations by program and name, of what takes long; none where no program tells."""
    least = _LOOKED_UP * sum(total.seconds for total in times.values())
    wanted = [(program, name) for (program, _, name), total in times.items() if total.seconds > least]
    try:
        return {key: instruction.op_name for key, instruction, _, _ in instructions_of(wanted, planes)}
    except DAMAGED:
        return {}


def read_cpu(planes: Sequence[Plane]) -> CpuEvents:
    """Read the operations and the marked steps of a host, a line at a time.

    Raises:
        ProfileError: the file is damaged.
    """
    work: list[CpuWork] = []
    marks: list[Mark] = []
    for plane in planes:
        if plane.name == HOST and plane.stat_ids.keys() & {_NAME, STEP}:
            origin = origin_of(plane)
            for line in plane.lines:
                events = line.events((_NAME, _DEVICE, _MODULE, _PROGRAM, _RUN, STEP))
                start = (line.timestamp_ns - origin) * PS_PER_NS + events.offset
                marks += marks_of(events, start)
                work += _operations(plane, events, start)
    return CpuEvents(tuple(work), tuple(marks))


def settled(planes: Sequence[Plane], marks: Sequence[Mark]) -> Sequence[Mark]:
    """The marks without those that hold the start-up of the job; from now on the planes leave out what was before."""
    steps = orderly_marks(marks) or []
    count = start_up([mark.end - mark.start for mark in steps])
    if not count:
        return marks
    since = min(map(origin_of, (plane for plane in planes if plane.name == HOST))) + steps[count].start // PS_PER_NS
    for plane in planes:
        plane.since_ns = since
    return steps[count:]


def origin_of(plane: Plane) -> int:
    """Nanosecond at which the first line of a host begins."""
    return min((line.timestamp_ns for line in plane.lines if not line.is_empty), default=0)


def marks_of(events: Events, start: Integers) -> Iterator[Mark]:
    """The steps that the training loop of a host marked among these events."""
    if STEP in events.stats:
        known, number = events.stats[STEP]
        for row in np.flatnonzero(known).tolist():
            yield Mark(int(number[row]), int(start[row]), int(start[row] + events.duration[row]))


def _operations(plane: Plane, events: Events, start: Integers) -> Iterator[CpuWork]:
    columns = device, _, _, _, name = [events.column(each) for each in (_DEVICE, _RUN, _PROGRAM, _MODULE, _NAME)]
    rows, end = np.flatnonzero(name.known & device.known), start + events.duration
    if len(rows):
        rows = rows[np.lexsort((-end[rows], start[rows]))]
        yield CpuWork(plane, *(column.value[rows] for column in columns), start=start[rows], end=end[rows])


MS_PER_PS = 1e-9
_ENDS_LEFT_OUT_ABOVE = 5
_GROUPS_OF_TENSORFLOW = ("TraceContext", "FunctionRun", "SessionRun", "RunGraph", "ExecutorState::Process")
"""Events that XProf takes for steps where the training loop marks none."""


def convert_cpu(hosts: Sequence[Sequence[Mark]], memory: MemoryProfile) -> Conversion | None:
    """The tables that XProf would return, unrounded; None if only XProf can make them.

    Args:
        hosts: the marks of each, where nothing ran on other devices: see :func:`has_other_work`.
        memory: of the first.
    """
    every = [orderly_marks(host) for host in hosts]
    marks = [host for host in every if host is not None]
    if len(marks) < len(hosts):
        return None
    steps = [{mark.number: StepRow(stepTimeMs=MS_PER_PS * (mark.end - mark.start)) for mark in host} for host in marks]
    return Conversion(summary=Summary(device_type="CPU"), steps=joined_steps(steps), memory=memory)


def has_other_work(planes: Sequence[Plane]) -> bool:
    """Whether something ran that is neither a CPU's nor marked by a step of JAX."""
    devices = (plane for plane in planes if plane.name.startswith("/device:"))
    return any(not line.is_empty for plane in devices for line in plane.lines) or has_groups_of_tensorflow(planes)


def has_groups_of_tensorflow(planes: Sequence[Plane]) -> bool:
    """Whether TensorFlow ran steps that XProf knows by the names of their events."""
    hosts = (plane for plane in planes if plane.name == HOST)
    return any(name.startswith(_GROUPS_OF_TENSORFLOW) for plane in hosts for name in plane.names.values())


def orderly_marks(marks: Iterable[Mark]) -> list[Mark] | None:
    """Those of one host in their order; None where they overlap or a number comes twice."""
    steps = sorted(marks, key=lambda mark: mark.number)
    orderly = all(one.number < other.number and one.end <= other.start for one, other in pairwise(steps))
    return steps if orderly else None


def joined_steps(hosts: Sequence[Mapping[int, StepRow]]) -> tuple[StepRow, ...]:
    """The steps that all hosts marked, each as long as on the slowest of them.

    Of more than five, the first and the last are left out, which may be cut off or slowed by the start of the
    recording: ``ConvertStepEventsToStepDb`` of XProf.

    Args:
        hosts: the steps of each by their number.
    """
    common = sorted(set.intersection(*(set(host) for host in hosts))) if hosts else []
    kept = common[1:-1] if len(common) > _ENDS_LEFT_OUT_ABOVE else common
    return tuple(max((host[number] for host in hosts), key=lambda row: row.duration or 0.0) for number in kept)
