"""How full the memories of a host's devices were: ``GenerateMemoryProfile`` of XProf."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from asap.profiles.xplane.planes import Plane
from asap.profiles.xprof.tables import MemoryProfile

_EVENTS = ("MemoryAllocation", "MemoryDeallocation")
_WHERE = ("index_on_host", "device_ordinal", "allocator_name")
_SIZES = ("bytes_reserved", "bytes_allocated", "bytes_available")
_HOST = "/host:CPU"


def memory_profile(planes: Sequence[Plane]) -> MemoryProfile:
    """The allocators of one host."""
    fullest: dict[str, tuple[int, int]] = {}
    for plane in planes:
        wanted = [key for key, name in plane.names.items() if name in _EVENTS] if plane.name == _HOST else []
        for line in plane.lines if wanted else ():
            events = line.events((*_WHERE, *_SIZES))
            rows = np.flatnonzero(np.isin(events.metadata, wanted))
            columns = {name: events.stats[name].value[rows] for name in _SIZES if name in events.stats}
            zero = np.zeros(len(rows), dtype=np.int64)
            reserved, allocated, available = (columns.get(name, zero) for name in _SIZES)
            used = reserved + allocated
            for where, row in zip(_allocators(plane, events.stats, rows), range(len(rows)), strict=True):
                if used[row] >= fullest.get(where, (0, 0))[0]:
                    fullest[where] = (int(used[row]), int(used[row] + available[row]))
    allocators: dict[str, Any] = {
        where: {"profileSummary": {"peakStats": {"peakBytesInUse": used}, "memoryCapacity": capacity}}
        for where, (used, capacity) in fullest.items()
    }
    return MemoryProfile.model_validate({"memoryProfilePerAllocator": allocators})


def _allocators(plane: Plane, stats: Mapping[str, Any], rows: np.ndarray) -> list[str]:
    """The allocator of each event: by name, or by the number of its device."""
    found = [""] * len(rows)
    for name in _WHERE:
        if name in stats:
            known, values = stats[name].known[rows].tolist(), stats[name].value[rows].tolist()
            named = plane.text if name == _WHERE[-1] else str
            found = [named(value) if here else before for here, value, before in zip(known, values, found, strict=True)]
    return found
