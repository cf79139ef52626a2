"""The events of a CPU profile, which is all that it has.

There are no device planes: operations lie on the threads of the host, with the number of their virtual device.
Control flow contains its body, so an operation's own time is its time without what it contains.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

import numpy as np

from asap.profiles.xplane.columns import Integers
from asap.profiles.xplane.planes import Column, Line, Plane
from asap.profiles.xplane.spans import covered, own_times

PS, PS_PER_NS = 1e-12, 1000
_HOST = "/host:CPU"
_NAME, _DEVICE, _MODULE, _RUN = "hlo_op", "device_ordinal", "hlo_module", "run_id"


class CpuInstruction(NamedTuple):
    """An operation of a module."""

    module: str
    name: str


@dataclass
class Total:
    """Own time of an operation and how often it ran, over all devices."""

    seconds: float = 0.0
    occurrences: int = 0


@dataclass(frozen=True, eq=False)
class CpuWork:
    """Operations of one thread, ordered by start, in picoseconds after the first event of the host."""

    host: int
    device: Integers
    run: Integers
    module: Sequence[str]
    name: Sequence[str]
    start: Integers
    end: Integers

    def of_device(self, device: int) -> "CpuWork":
        """What it did of one virtual device."""
        rows = np.flatnonzero(self.device == device)
        columns = (self.device[rows], self.run[rows], _picked(self.module, rows), _picked(self.name, rows))
        return CpuWork(self.host, *columns, self.start[rows], self.end[rows])


def _picked(values: Sequence[str], rows: Integers) -> Sequence[str]:
    return [str(values[row]) for row in rows.tolist()]


@dataclass(frozen=True)
class CpuEvents:
    """What the virtual devices of all hosts did."""

    work: tuple[CpuWork, ...]

    @property
    def devices(self) -> int:
        """Virtual devices that ran an operation."""
        return len(self._devices)

    @cached_property
    def window_s(self) -> float:
        """From the first to the last operation, mean over devices."""
        return PS * fmean(int(end.max() - start.min()) for start, end in self._devices.values())

    @property
    def duty_cycle(self) -> float | None:
        """Share of the window in which a device ran at least one operation, mean over devices."""
        return (
            PS * fmean(covered(*spans) for spans in self._devices.values()) / self.window_s if self.window_s else None
        )

    @cached_property
    def modules(self) -> Mapping[str, Sequence[float]]:
        """Seconds of each run of each module on each device."""
        runs: dict[tuple[int, int, str, int], tuple[int, int]] = {}
        for work in self.work:
            columns = (work.device.tolist(), work.module, work.run.tolist(), work.start.tolist(), work.end.tolist())
            for device, module, run, start, end in zip(*columns, strict=True):
                key = (work.host, device, module, run)
                first, last = runs.get(key, (start, end))
                runs[key] = (min(first, start), max(last, end))
        modules: dict[str, list[float]] = defaultdict(list)
        for (_, _, module, _), (first, last) in runs.items():
            modules[module].append(PS * (last - first))
        return modules

    @cached_property
    def operations(self) -> Mapping[CpuInstruction, Total]:
        """Time and count of each operation."""
        totals: dict[CpuInstruction, Total] = defaultdict(Total)
        for work in self.work:
            own = own_times(work.start, work.end).tolist()
            for module, name, time in zip(work.module, work.name, own, strict=True):
                total = totals[CpuInstruction(module, name)]
                total.seconds += PS * time
                total.occurrences += 1
        return totals

    @cached_property
    def _devices(self) -> Mapping[tuple[int, int], tuple[Integers, Integers]]:
        found: dict[tuple[int, int], list[tuple[Integers, Integers]]] = defaultdict(list)
        for work in self.work:
            for device in np.unique(work.device).tolist():
                mine = work.device == device
                found[work.host, device].append((work.start[mine], work.end[mine]))
        joined = {key: tuple(map(np.concatenate, zip(*spans, strict=True))) for key, spans in found.items()}
        return {key: (start, end) for key, (start, end) in joined.items()}


def read_cpu(hosts: Sequence[Sequence[Plane]]) -> CpuEvents:
    """Read the operations of all hosts.

    Raises:
        ProfileError: a file is damaged.
    """
    return CpuEvents(
        tuple(
            work
            for number, planes in enumerate(hosts)
            for plane in planes
            if plane.name == _HOST
            for work in _of_plane(plane, number)
        )
    )


def _of_plane(plane: Plane, host: int) -> Iterator[CpuWork]:
    origin = min((line.timestamp_ns for line in plane.lines if not line.is_empty), default=0)
    if _NAME in plane.stat_ids and _DEVICE in plane.stat_ids:
        for line in plane.lines:
            work = _of_line(plane, line, host, origin)
            yield from [work] if work else []


def _of_line(plane: Plane, line: Line, host: int, origin: int) -> CpuWork | None:
    events = line.events((_NAME, _DEVICE, _MODULE, _RUN))
    rows = np.flatnonzero(events.stats[_NAME].known & events.stats[_DEVICE].known)
    if not len(rows):
        return None
    start = (line.timestamp_ns - origin) * PS_PER_NS + events.offset[rows]
    end = start + events.duration[rows]
    order = np.lexsort((-end, start))

    def texts(column: Column | None) -> list[str]:
        return [plane.text(number) for number in column.value[rows][order].tolist()] if column else [""] * len(rows)

    run = events.stats[_RUN].value[rows] if _RUN in events.stats else np.zeros_like(rows)
    return CpuWork(
        host=host,
        device=events.stats[_DEVICE].value[rows][order],
        run=run[order],
        module=texts(events.stats.get(_MODULE)),
        name=texts(events.stats[_NAME]),
        start=start[order],
        end=end[order],
    )
