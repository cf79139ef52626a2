"""The events of one TensorCore: when its operations, modules and steps ran on the clock of the device.

As ``ConvertTensorCoreDeviceTraceXPlaneToOpMetricsDb`` and ``GetDeviceEventTimespan`` of XProf do.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from asap.profiles.xplane.columns import Integers, own_times
from asap.profiles.xplane.planes import Events, Line, Plane


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
_PS_PER_NS = 1000
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

    def __init__(self, plane: Plane, host: int):
        self.plane, self.host = plane, host
        lines: dict[str, Line] = {}
        for line in plane.lines:
            if (line.name in lines and line.name in (OPERATIONS, STEPS)) or line.name in _OTHER_OPERATIONS:
                raise UnfamiliarError(line.name)
            lines.setdefault(line.name, line)
        late = [line.timestamp_ns for line in plane.lines if not line.is_empty]
        self._origin = min(late, default=0) if max(late, default=0) > _EPOCH else 0
        self.has_steps = STEPS in lines and not lines[STEPS].is_empty
        self.operations = self._spans([lines[OPERATIONS]] if OPERATIONS in lines else [])
        self.steps = self._spans([lines[STEPS]] if STEPS in lines else [])
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
        host_start = (events.timestamp_ns - self._origin) * _PS_PER_NS + events.offset
        host_end = host_start + events.duration
        start, end = host_start, host_end
        if _OFFSET in stats and _DURATION in stats:
            known = stats[_OFFSET].known & stats[_DURATION].known
            start = np.where(known, stats[_OFFSET].value, start)
            end = np.where(known, start + stats[_DURATION].value, end)
        group = stats.get(GROUP)
        return Spans(
            events.metadata,
            start,
            end,
            np.full(len(events), NO_GROUP) if group is None else np.where(group.known, group.value, NO_GROUP),
            host_start,
            host_end,
        )
