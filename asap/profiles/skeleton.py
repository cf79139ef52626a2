"""The skeleton of a profile: which devices ran something and, on demand, when, and how long each module took."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np

from asap.profiles.collectives import is_host_copy_event
from asap.profiles.xplane.columns import Integers, uncovered
from asap.profiles.xplane.planes import Line, Plane

PS = 1e-12

_DEVICE = re.compile(r"/device:(?:TPU|GPU):\d+")
_WORK = re.compile(r"XLA Ops|Stream #.*(?:Compute|Kernel)")
_MODULES = "XLA Modules"
_HOST = "/host:CPU"
_STREAM = "Stream #"
_PS_PER_NS = 1000


@dataclass
class ExposedCopies:
    """Time in copies between HBM and host memory with no kernel beside them, and how many copies, over all devices."""

    seconds: float = 0.0
    occurrences: int = 0


@dataclass(frozen=True)
class Skeleton:
    """Facts of all hosts. Events are read when they are first asked for: that takes longer."""

    has_host: bool
    _devices: tuple[Plane, ...]

    @property
    def devices(self) -> int:
        """Devices that were recorded."""
        return len(self._devices)

    @cached_property
    def active(self) -> int:
        """Devices that ran an operation."""
        return len(self._work)

    @cached_property
    def window_s(self) -> float | None:
        """From the first to the last operation, mean over active devices."""
        return fmean(map(_window_s, self._work)) if self._work else None

    @cached_property
    def host_copies(self) -> Mapping[str, ExposedCopies]:
        """Copies on the streams of GPUs by the name of their event."""
        copies: dict[str, ExposedCopies] = defaultdict(ExposedCopies)
        for lines in self._work:
            _add_host_copies(copies, lines[0].plane)
        return copies

    @cached_property
    def modules(self) -> Mapping[str, Sequence[float]]:
        """Seconds of each run of each module, over all devices."""
        modules: dict[str, list[float]] = defaultdict(list)
        for plane in self._devices:
            for events in (line.events() for line in plane.lines if line.name == _MODULES):
                for metadata, duration in zip(events.metadata.tolist(), events.duration.tolist(), strict=True):
                    modules[plane.names.get(metadata, "")].append(PS * duration)
        return modules

    @cached_property
    def _work(self) -> list[list[Line]]:
        """Lines of operations of each device that has one."""
        lines = (
            [line for line in plane.lines if _WORK.match(line.name) and not line.is_empty] for plane in self._devices
        )
        return [found for found in lines if found]


def skeleton_of(hosts: Sequence[Sequence[Plane]]) -> Skeleton:
    """Skim the planes of all hosts."""
    planes = [plane for host in hosts for plane in host]
    return Skeleton(
        has_host=any(plane.name == _HOST for plane in planes),
        _devices=tuple(plane for plane in planes if _DEVICE.fullmatch(plane.name)),
    )


def _add_host_copies(copies: dict[str, ExposedCopies], plane: Plane) -> None:
    """Add the copies of a device; the time of each is that in which no kernel ran."""
    names = {key: name for key, name in plane.names.items() if is_host_copy_event(name)}
    streams = [line for line in plane.lines if line.name.startswith(_STREAM) and not line.is_empty] if names else []
    if not streams:
        return
    metadata, start, end = _moments(streams)
    copied = np.isin(metadata, list(names))
    exposed = uncovered(start[copied], end[copied], start[~copied], end[~copied])
    for key, time in zip(metadata[copied].tolist(), exposed.tolist(), strict=True):
        copies[names[key]].occurrences += 1
        copies[names[key]].seconds += PS * time


def _window_s(lines: Sequence[Line]) -> float:
    _, start, end = _moments(lines)
    return PS * int(end.max() - start.min())


def _moments(lines: Sequence[Line]) -> tuple[Integers, Integers, Integers]:
    """Metadata, start and end of the events of lines, in picoseconds after the first line."""
    every = [line.events() for line in lines]
    origin = min(events.timestamp_ns for events in every)
    start = np.concatenate([(events.timestamp_ns - origin) * _PS_PER_NS + events.offset for events in every])
    end = start + np.concatenate([events.duration for events in every])
    return np.concatenate([events.metadata for events in every]), start, end
