"""The skeleton of a profile: which devices ran something and, on demand, when, and how long each module took."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any

from asap.core.errors import ProfileError
from asap.profiles.host_transfers import is_host_copy_event
from asap.profiles.xprof.xplane import message_classes

NS, PS = 1e-9, 1e-12

_DEVICE = re.compile(r"/device:(?:TPU|GPU):\d+")
_WORK = re.compile(r"XLA Ops|Stream #.*(?:Compute|Kernel)")
_MODULES = "XLA Modules"
_STEPS = "Steps"
_HOST = "/host:CPU"
_STREAM = "Stream #"


@dataclass
class ExposedCopies:
    """Time in copies between HBM and host memory with no kernel beside them, and how many copies, over all devices."""

    seconds: float = 0.0
    occurrences: int = 0


@dataclass(frozen=True)
class _Device:
    plane: Any
    lines: tuple[tuple[str, Any], ...]

    @cached_property
    def work(self) -> list[Any]:
        """Lines of operations that have one."""
        return [line for name, line in self.lines if _WORK.match(name) and line.events]


@dataclass(frozen=True)
class Skeleton:
    """Facts of all hosts. Events are read when they are first asked for: that takes longer."""

    has_host: bool
    _devices: tuple[_Device, ...]

    @property
    def devices(self) -> int:
        """Devices that were recorded."""
        return len(self._devices)

    @cached_property
    def active(self) -> int:
        """Devices that ran an operation."""
        return sum(bool(device.work) for device in self._devices)

    @property
    def has_steps(self) -> bool:
        """Whether a device has a line of steps: then XProf has their times, and no module need stand for one."""
        return any(name == _STEPS for device in self._devices for name, _ in device.lines)

    @cached_property
    def window_s(self) -> float | None:
        """From the first to the last operation, mean over active devices."""
        windows = [_window_s(device.work) for device in self._devices if device.work]
        return fmean(windows) if windows else None

    @cached_property
    def host_copies(self) -> Mapping[str, ExposedCopies]:
        """Copies on the streams of GPUs by the name of their event."""
        copies: dict[str, ExposedCopies] = defaultdict(ExposedCopies)
        for device in self._devices:
            _add_host_copies(copies, device)
        return copies

    @cached_property
    def modules(self) -> Mapping[str, Sequence[float]]:
        """Seconds of each run of each module, over all devices."""
        modules: dict[str, list[float]] = defaultdict(list)
        for device in self._devices:
            for name, line in device.lines:
                if name == _MODULES:
                    _add_runs(modules, device.plane, line)
        return modules


def read_skeleton(files: Sequence[Path]) -> Skeleton:
    """Skim the planes of all hosts.

    Raises:
        ProfileError: a file is not an XSpace.
    """
    planes = [(_text(plane.name), plane) for file in files for plane in _parse("XSpace", file.read_bytes()).planes]
    devices = [plane for name, plane in planes if _DEVICE.fullmatch(name)]
    return Skeleton(
        has_host=any(name == _HOST for name, _ in planes),
        _devices=tuple(_Device(plane, tuple((_text(line.name), line) for line in plane.lines)) for plane in devices),
    )


def _parse(message: str, data: bytes) -> Any:
    from google.protobuf.message import DecodeError

    try:
        return message_classes()[message].FromString(data)
    except DecodeError as error:
        raise ProfileError(f"is no valid {message} message") from error


def _text(name: bytes) -> str:
    return name.decode(errors="replace")


def _add_host_copies(copies: dict[str, ExposedCopies], device: _Device) -> None:
    """Add the copies of a device; the time of each is that in which no kernel ran."""
    entries = (_parse("EventMetadataEntry", entry) for entry in device.plane.event_metadata)
    names = {entry.key: name for entry in entries if is_host_copy_event(name := _text(entry.value.name))}
    if not names or not device.work:
        return
    kernels: list[tuple[float, float]] = []
    copied: list[tuple[str, float, float]] = []
    for line in (line for name, line in device.lines if name.startswith(_STREAM)):
        for event in map(partial(_parse, "XEvent"), line.events):
            start, end = _interval(line, event)
            if event.metadata_id in names:
                copied.append((names[event.metadata_id], start, end))
            else:
                kernels.append((start, end))
    busy = _merged(kernels)
    for name, start, end in copied:
        copies[name].occurrences += 1
        copies[name].seconds += end - start - _overlap(busy, start, end)


def _merged(intervals: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The union of intervals, sorted and without overlaps."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _overlap(busy: list[tuple[float, float]], start: float, end: float) -> float:
    """How much of an interval lies inside sorted, separate ones."""
    shared = 0.0
    for index in range(max(bisect_right(busy, (start, inf)) - 1, 0), len(busy)):
        if busy[index][0] >= end:
            break
        shared += max(min(end, busy[index][1]) - max(start, busy[index][0]), 0.0)
    return shared


def _add_runs(modules: dict[str, list[float]], plane: Any, line: Any) -> None:
    runs = [_parse("XEvent", event) for event in line.events]
    wanted = {run.metadata_id for run in runs}
    entries = (_parse("EventMetadataEntry", entry) for entry in plane.event_metadata)
    names = {entry.key: _text(entry.value.name) for entry in entries if entry.key in wanted}
    for run in runs:
        modules[names.get(run.metadata_id, "")].append(PS * run.duration_ps)


def _window_s(lines: Sequence[Any]) -> float:
    intervals = [_interval(line, _parse("XEvent", event)) for line in lines for event in line.events]
    return max(end for _, end in intervals) - min(start for start, _ in intervals)


def _interval(line: Any, event: Any) -> tuple[float, float]:
    start = NS * line.timestamp_ns + PS * event.offset_ps
    return start, start + PS * event.duration_ps
