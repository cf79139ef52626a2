"""The skeleton of a profile: which devices ran something; and, if it is asked for, when, and how long each module took.

Field numbers are those of ``xplane.proto`` (openxla/xla, third_party/tsl/tsl/profiler/protobuf).
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean

from asap.profiles.wire import integers, messages, text

NS, PS = 1e-9, 1e-12
_PLANES = 1
_NAME, _LINES, _METADATA = 2, 3, 4
_TIMESTAMP, _EVENTS = 3, 4
_EVENT_METADATA, _OFFSET, _DURATION = 1, 2, 3
_KEY, _VALUE = 1, 2

_DEVICE = re.compile(r"/device:(?:TPU|GPU):\d+")
_WORK = re.compile(r"XLA Ops|Stream #.*(?:Compute|Kernel)")
_MODULES = "XLA Modules"
_STEPS = "Steps"
_HOST = "/host:CPU"


@dataclass(frozen=True)
class _Device:
    plane: memoryview
    lines: tuple[tuple[str, memoryview], ...]

    @cached_property
    def work(self) -> list[memoryview]:
        """Lines of operations that have one."""
        return [line for name, line in self.lines if _WORK.match(name) and any(True for _ in messages(line, _EVENTS))]


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
        ProfileError: a file is not a protobuf message.
    """
    planes = [
        (text(plane, _NAME), plane) for file in files for plane in messages(memoryview(file.read_bytes()), _PLANES)
    ]
    devices = [plane for name, plane in planes if _DEVICE.fullmatch(name)]
    return Skeleton(
        has_host=any(name == _HOST for name, _ in planes),
        _devices=tuple(_Device(plane, _lines(plane)) for plane in devices),
    )


def _lines(plane: memoryview) -> tuple[tuple[str, memoryview], ...]:
    return tuple((text(line, _NAME), line) for line in messages(plane, _LINES))


def _add_runs(modules: dict[str, list[float]], plane: memoryview, line: memoryview) -> None:
    runs = [integers(event, _EVENT_METADATA, _DURATION) for event in messages(line, _EVENTS)]
    wanted = {metadata for metadata, _ in runs}
    names = {}
    for entry in messages(plane, _METADATA):
        (key,) = integers(entry, _KEY)
        if key in wanted:
            names[key] = text(next(messages(entry, _VALUE)), _NAME)
        if len(names) == len(wanted):
            break
    for metadata, duration in runs:
        modules[names.get(metadata, "")].append(PS * duration)


def _window_s(lines: Sequence[memoryview]) -> float:
    starts, ends = [], []
    for line in lines:
        (timestamp,) = integers(line, _TIMESTAMP)
        for event in messages(line, _EVENTS):
            offset, duration = integers(event, _OFFSET, _DURATION)
            start = NS * timestamp + PS * offset
            starts.append(start)
            ends.append(start + PS * duration)
    return max(ends) - min(starts)
