"""The events of one TensorCore on the clock of its device, and its steps with the time that waits for input."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asap.profiles.kpis import after_start_up, start_up
from asap.profiles.xplane.columns import Integers, covered, distinct, own_times
from asap.profiles.xplane.planes import PS_PER_NS, Events, Line, Plane
from asap.profiles.xplane.wire import Place, fields


class UnfamiliarError(Exception):
    """A profile that holds something which is not known here; it never leaves this room."""


CORE = re.compile(r"/device:TPU:\d+")
OPERATIONS, MODULES, STEPS = "XLA Ops", "XLA Modules", "Steps"
GROUP = "group_id"
NO_GROUP = -1

_OFFSET, _DURATION = "device_offset_ps", "device_duration_ps"
_UNKNOWN = ("time_scale_multiplier", "tc_offload_start_id", "flops", "model_flops", "bytes_accessed")
"""Of a single event: versions of XProf differ in what they make of them."""
_OTHER_OPERATIONS = ("TensorFlow Ops", "Sparse Core Ops")
_EPOCH = 2**52
"""Nanoseconds, 52 days: later ones have no room in 64 bits as picoseconds, and count from the first line."""


@dataclass(frozen=True, eq=False)
class Spans:
    """Events with their metadata and their group, in picoseconds; by the clock of the device, and of the host."""

    metadata: Integers
    start: Integers
    end: Integers
    group: Integers
    host_start: Integers
    host_end: Integers

    def __len__(self) -> int:
        return len(self.metadata)

    @cached_property
    def own(self) -> Integers:
        """Own time of each: without what is inside it."""
        return own_times(self.start, self.end)

    @cached_property
    def grouped_own(self) -> Integers:
        """The same among those that have a group alone; zero for others."""
        own, rows = np.zeros_like(self.start), np.flatnonzero(self.group != NO_GROUP)
        own[rows] = own_times(self.start[rows], self.end[rows])
        return own


class Core:
    """One TensorCore of a host.

    Raises:
        ProfileError: the file is damaged.
        UnfamiliarError: XProf has to read it.
    """

    def __init__(self, plane: Plane):
        self.plane = plane
        lines: dict[str, Line] = {}
        for line in plane.lines:
            if (line.name in lines and line.name in (OPERATIONS, STEPS)) or line.name in _OTHER_OPERATIONS:
                raise UnfamiliarError(line.name)
            lines.setdefault(line.name, line)
        late = [line.timestamp_ns for line in plane.lines if not line.is_empty]
        self._origin = min(late, default=0) if max(late, default=0) > _EPOCH else 0
        self.has_steps = STEPS in lines and not lines[STEPS].is_empty
        marked = [lines[STEPS]] if STEPS in lines else []
        self.steps = self._spans(marked)
        marks = _longest(self.steps)
        if left_out := start_up([*marks.values()]):
            first = self.steps.host_start[self.steps.group == [*marks][left_out]].min()
            plane.since_ns = self._origin + int(first) // PS_PER_NS
            self.steps = self._spans(marked)
        self.started = after_start_up(left_out, len(marks))
        self.operations = self._spans([lines[OPERATIONS]] if OPERATIONS in lines else [])
        self.modules = self._spans([line for line in plane.lines if line.name == MODULES])

    @property
    def total_time(self) -> int:
        """From the first to the last operation or step."""
        start = np.concatenate([self.operations.start, self.steps.start])
        end = np.concatenate([self.operations.end, self.steps.end])
        return int(end.max() - start.min()) if len(start) else 0

    def _spans(self, lines: Sequence[Line]) -> Spans:
        parts = [self._of(line.events((_OFFSET, _DURATION, GROUP, *_UNKNOWN))) for line in lines]
        if len(parts) == 1:
            return parts[0]
        nothing = np.empty(0, dtype=np.int64)
        columns = zip(*([p.metadata, p.start, p.end, p.group, p.host_start, p.host_end] for p in parts), strict=True)
        return Spans(*(map(np.concatenate, columns) if parts else [nothing] * 6))

    def _of(self, events: Events) -> Spans:
        stats = events.stats
        if any(stats[name].known.any() for name in _UNKNOWN if name in stats):
            raise UnfamiliarError("statistics of events")
        host_start = (events.timestamp_ns - self._origin) * PS_PER_NS + events.offset
        host_end = host_start + events.duration
        offset, length = events.column(_OFFSET), events.column(_DURATION)
        known = offset.known & length.known
        start = np.where(known, offset.value, host_start)
        end = np.where(known, start + length.value, host_end)
        return Spans(events.metadata, start, end, np.where(*events.column(GROUP), NO_GROUP), host_start, host_end)


_INFEED = "infeed"
_SPARSE_CORE = "sparsecorev0"


@dataclass(frozen=True)
class MarkedStep:
    """The longest mark of a step on any core, in picoseconds; and the largest share that a core waited for input."""

    time: int
    infeed: float


def marked_steps(hosts: Sequence[Mapping[int, MarkedStep]]) -> list[MarkedStep]:
    """The steps that all cores of all hosts marked and ran operations in.

    Raises:
        UnfamiliarError: hosts have different steps.
    """
    if len({tuple(steps) for steps in hosts}) > 1:
        raise UnfamiliarError("steps of several hosts")
    every = [[steps[group] for steps in hosts] for group in (hosts[0] if hosts else ())]
    return [MarkedStep(max(s.time for s in step), max(s.infeed for s in step)) for step in every]


def steps_of_host(every: Sequence[Core]) -> Mapping[int, MarkedStep]:
    """By group; a step has one length on all cores of a host, that of its longest mark."""
    cores = [core for core in every if len(core.operations)]
    marks = [_longest(core.steps) for core in cores]
    ran = [distinct(core.operations.group).tolist() for core in cores]
    steps = [marked.keys() & groups for marked, groups in zip(marks, ran, strict=True) if set(groups) - {NO_GROUP}]
    common = sorted(set.intersection(*map(set, steps))) if steps else []
    waited = [_infeed(core) for core in cores]
    found = {}
    for group in common:
        time = max(marked.get(group, 0) for marked in marks)
        found[group] = MarkedStep(time, max(wait.get(group, 0) for wait in waited) / time if time else 0.0)
    return found


def _longest(marks: Spans) -> dict[int, int]:
    longest: dict[int, int] = {}
    for group, time in zip(marks.group.tolist(), (marks.end - marks.start).tolist(), strict=True):
        if group != NO_GROUP:
            longest[group] = max(time, longest.get(group, 0))
    return longest


def _infeed(core: Core) -> dict[int, int]:
    """Own time of infeeds in each group."""
    spans = core.operations
    keys, place = np.unique(spans.metadata, return_inverse=True)
    categories = [str(core.plane.description(key).stats.get("hlo_category", "")) for key in keys.tolist()]
    if any(category.lower().startswith(_SPARSE_CORE) for category in categories):
        raise UnfamiliarError("SparseCore")
    mine = np.array([category == _INFEED for category in categories], dtype=bool)[place]
    waited: dict[int, int] = {}
    for group, time in zip(spans.group[mine].tolist(), spans.grouped_own[mine].tolist(), strict=True):
        waited[group] = waited.get(group, 0) + time
    return waited


_OFF_DUTY = ("infeed", "outfeed", "host send", "host send-done", "host recv", "host recv-done", "megacore fusion")
_LOCAL_CHIP = 4


def busy_time(cores: Iterable[Core]) -> tuple[int, int]:
    """The time of the chips of a host in which a core ran an operation, and all of their time, in picoseconds."""
    busy, whole = 0, 0
    for members in _chips(cores):
        busy += _active(members)
        everything = [spans for core in members for spans in (core.operations, core.modules) if len(spans)]
        if everything:
            starts, ends = ([getattr(spans, side) for spans in everything] for side in ("host_start", "host_end"))
            whole += int(max(end.max() for end in ends) - min(start.min() for start in starts))
    return busy, whole


def _active(cores: Sequence[Core]) -> int:
    """When at least one core was on duty. An operation within another one decides for its time."""
    on_duty = [_on_duty(core) for core in cores]
    if all(mine.all() for mine in on_duty):
        pairs = [(core.operations.host_start, core.operations.host_end) for core in cores]
        return covered(*map(np.concatenate, zip(*pairs, strict=True)))
    if len(cores) > 1:
        raise UnfamiliarError("transfers with the host on a chip of several cores")
    spans = cores[0].operations
    return int(own_times(spans.host_start, spans.host_end)[on_duty[0]].sum())


def _on_duty(core: Core) -> NDArray[np.bool_]:
    keys, place = np.unique(core.operations.metadata, return_inverse=True)
    off = [core.plane.description(key).stats.get("hlo_category") in _OFF_DUTY for key in keys.tolist()]
    return ~np.array(off, dtype=bool)[place]


def _chips(cores: Iterable[Core]) -> Iterable[list[Core]]:
    """Cores of one chip share its time; a core that does not say where it is stands alone."""
    chips: dict[int, list[Core]] = defaultdict(list)
    for core in cores:
        details = core.plane.stats.get("core_details")
        if isinstance(details, bytes):
            number = {number: value for number, _, value, _ in fields(details, Place(0, len(details)))}.get(
                _LOCAL_CHIP, 0
            )
            chips[number].append(core)
        else:
            yield [core]
    yield from chips.values()
