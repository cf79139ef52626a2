"""What the devices of a host did: which of them ran something, how long, and how long each module took."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from asap.profiles.collectives import is_host_copy_event
from asap.profiles.xplane.columns import Integers, uncovered
from asap.profiles.xplane.planes import PS_PER_NS, Line, Plane
from asap.profiles.xprof.tables import MemoryProfile

PS = 1e-12

_DEVICE, _GPU = re.compile(r"/device:(?:TPU|GPU):\d+"), "/device:GPU"
_WORK = re.compile(r"XLA Ops|Stream #(?:\d+$|.*(?:Compute|Kernel))")
_MODULES = "XLA Modules"
HOST = "/host:CPU"
_STREAM = "Stream #"


class CpuInstruction(NamedTuple):
    """An operation of a module, and the path of the user's operation that it comes from, where that was looked up."""

    module: str
    name: str
    path: str = ""


class Total(NamedTuple):
    """Time, and how often."""

    seconds: float = 0.0
    occurrences: float = 0

    def __add__(self, other: "Total") -> "Total":  # pyright: ignore[reportIncompatibleMethodOverride]
        return Total(self.seconds + other.seconds, self.occurrences + other.occurrences)


@dataclass
class Totals:
    """What the devices of one or more hosts did, ``virtual`` ones of a CPU or others.

    ``devices`` were recorded, and ``active`` ones ran an operation. ``windows_s`` is the time from the first operation
    or kernel to the last, ``busy_s`` that in which one ran, over all devices of a CPU and, where asked for, of a GPU.
    ``copies`` are those on the streams of GPUs beside which no kernel ran, by the name of their event; ``operations``
    have their own time; ``modules`` hold the seconds of each run on each device.
    """

    recorded_hosts: int = 0
    devices: int = 0
    active: int = 0
    virtual: int = 0
    windows_s: float = 0.0
    busy_s: float = 0.0
    copies: dict[str, Total] = field(default_factory=lambda: defaultdict(Total))
    operations: dict[CpuInstruction, Total] = field(default_factory=lambda: defaultdict(Total))
    modules: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, other: "Totals") -> None:
        """Add those of another host."""
        for name, theirs in vars(other).items():
            mine = getattr(self, name)
            if isinstance(theirs, dict):
                for key, value in theirs.items():
                    mine[key] += value
            else:
                setattr(self, name, mine + theirs)


def totals_of(planes: Sequence[Plane], with_kernels: bool = True) -> Totals:
    """Skim the planes of devices, and their kernels if asked for.

    Raises:
        ProfileError: the file is damaged.
    """
    totals = Totals(any(plane.name == HOST for plane in planes))
    for plane in (plane for plane in planes if _DEVICE.fullmatch(plane.name)):
        work = [line for line in plane.lines if _WORK.match(line.name) and not line.is_empty]
        totals.devices += 1
        totals.active += bool(work)
        if work and with_kernels and plane.name.startswith(_GPU):
            _, start, end = _moments(work)
            totals.windows_s += PS * int(end.max() - start.min()) if len(start) else 0.0
            _add_host_copies(totals.copies, plane)
        for events in (line.events() for line in plane.lines if line.name == _MODULES):
            for metadata, duration in zip(events.metadata.tolist(), events.duration.tolist(), strict=True):
                totals.modules[plane.names.get(metadata, "")].append(PS * duration)
    return totals


def _add_host_copies(copies: dict[str, Total], plane: Plane) -> None:
    """Add the copies of a device; the time of each is that in which no kernel ran."""
    names = {key: name for key, name in plane.names.items() if is_host_copy_event(name)}
    streams = [line for line in plane.lines if line.name.startswith(_STREAM) and not line.is_empty] if names else []
    if not streams:
        return
    metadata, start, end = _moments(streams)
    copied = np.isin(metadata, list(names))
    exposed = uncovered(start[copied], end[copied], start[~copied], end[~copied])
    for key, time in zip(metadata[copied].tolist(), exposed.tolist(), strict=True):
        copies[names[key]] += Total(PS * time, 1)


def _moments(lines: Sequence[Line]) -> tuple[Integers, Integers, Integers]:
    """Metadata, start and end of the events of lines, in picoseconds after the first line."""
    every = [line.events() for line in lines]
    origin = min(events.timestamp_ns for events in every)
    start = np.concatenate([(events.timestamp_ns - origin) * PS_PER_NS + events.offset for events in every])
    end = start + np.concatenate([events.duration for events in every])
    return np.concatenate([events.metadata for events in every]), start, end


_EVENTS = ("MemoryAllocation", "MemoryDeallocation")
_WHERE = ("index_on_host", "device_ordinal", "allocator_name")
_SIZES = ("bytes_reserved", "bytes_allocated", "bytes_available")


def memory_profile(planes: Sequence[Plane]) -> MemoryProfile:
    """The allocators of a host."""
    fullest: dict[str, tuple[int, int]] = {}
    for plane in planes:
        wanted = [key for key, name in plane.names.items() if name in _EVENTS] if plane.name == HOST else []
        for line in plane.lines if wanted else ():
            if not np.isin(line.events().metadata, wanted).any():
                continue
            events = line.events((*_WHERE, *_SIZES))
            rows = np.flatnonzero(np.isin(events.metadata, wanted))
            reserved, allocated, available = (events.column(name).value[rows] for name in _SIZES)
            used = reserved + allocated
            for where, row in zip(_allocators(plane, events.stats, rows), range(len(rows)), strict=True):
                if used[row] >= fullest.get(where, (0, 0))[0]:
                    fullest[where] = (int(used[row]), int(used[row] + available[row]))
    return MemoryProfile(memoryProfilePerAllocator=fullest)


def _allocators(plane: Plane, stats: Mapping[str, Any], rows: np.ndarray) -> list[str]:
    """The allocator of each event: by name, or by the number of its device."""
    found = [""] * len(rows)
    for name in _WHERE:
        if name in stats:
            known, values = stats[name].known[rows].tolist(), stats[name].value[rows].tolist()
            named = plane.text if name == _WHERE[-1] else str
            found = [named(value) if here else before for here, value, before in zip(known, values, found, strict=True)]
    return found
