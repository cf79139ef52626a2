"""The skeleton of a profile: which devices ran something, and how long each run of a module took.

Field numbers are those of ``xplane.proto`` (openxla/xla, third_party/tsl/tsl/profiler/protobuf).
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
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
_HOST = "/host:CPU"


@dataclass
class Skeleton:
    """Facts of all hosts. A device is active if it ran an operation."""

    devices: int = 0
    active: int = 0
    has_host: bool = False
    modules: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    windows_s: list[float] = field(default_factory=list)

    @property
    def window_s(self) -> float | None:
        """From the first to the last operation, mean over active devices, if it was asked for."""
        return fmean(self.windows_s) if self.windows_s else None


def read_skeleton(files: Sequence[Path], windows: bool = False) -> Skeleton:
    """Skim the planes of all hosts; first and last operations, which takes longer, only if they are asked for."""
    skeleton = Skeleton()
    for file in files:
        for plane in messages(memoryview(file.read_bytes()), _PLANES):
            name = text(plane, _NAME)
            skeleton.has_host |= name == _HOST
            if _DEVICE.fullmatch(name):
                _add_device(skeleton, plane, windows)
    return skeleton


def _add_device(skeleton: Skeleton, plane: memoryview, windows: bool) -> None:
    lines = [(text(line, _NAME), line) for line in messages(plane, _LINES)]
    work = [line for name, line in lines if _WORK.match(name) and any(True for _ in messages(line, _EVENTS))]
    skeleton.devices += 1
    skeleton.active += bool(work)
    if work and windows:
        skeleton.windows_s.append(_window_s(work))
    for name, line in lines:
        if name == _MODULES:
            _add_runs(skeleton.modules, plane, line)


def _add_runs(modules: dict[str, list[float]], plane: memoryview, line: memoryview) -> None:
    runs = [integers(event, _EVENT_METADATA, _DURATION) for event in messages(line, _EVENTS)]
    wanted = {metadata for metadata, _ in runs}
    names = {}
    for entry in messages(plane, _METADATA):
        (key,) = integers(entry, _KEY)
        if key in wanted:
            names[key] = text(next(messages(entry, _VALUE)), _NAME)
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
