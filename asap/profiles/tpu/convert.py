"""The tables of a TPU run."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from asap.core.units import PERCENT
from asap.profiles.tpu.core import CORE, GROUP, Core, UnfamiliarError
from asap.profiles.tpu.instructions import Instruction, instructions
from asap.profiles.tpu.roofline import Roofs, hlo_row, program_row
from asap.profiles.tpu.steps import MarkedStep, duty_cycle, marked_steps
from asap.profiles.xplane.planes import Plane
from asap.profiles.xprof.converter import Conversion
from asap.profiles.xprof.tables import MemoryProfile, StepRow, Summary

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


_DEVICES = ("/device:TPU:", "/device:GPU:", "/device:CUSTOM:")

MS_PER_PS = 1e-9


def convert_tpu(hosts: Sequence[Sequence[Plane]]) -> Conversion | None:
    """The tables that XProf would return, unrounded; None if only XProf can make them.

    Args:
        hosts: the planes of each.

    Raises:
        ProfileError: a file is damaged.
    """
    try:
        return _converted(hosts)
    except UnfamiliarError:
        return None


def _converted(hosts: Sequence[Sequence[Plane]]) -> Conversion:
    cores = [_cores(planes, number) for number, planes in enumerate(hosts)]
    every = [core for found in cores for core in found]
    found = instructions(every)
    if not found:
        raise UnfamiliarError("no operations")
    if any(core.has_steps for core in every):
        _require_groups(hosts, found)
    steps = marked_steps(cores)
    roofs = Roofs.of(every[0].plane.stats)
    total_time = sum(core.total_time for core in every)
    idle = PERCENT * (1 - sum(each.own_time for each in found) / total_time) if total_time else 0.0
    return Conversion(
        summary=_summary(every, steps, idle),
        steps=tuple(StepRow() for _ in steps),
        operations=tuple(hlo_row(each, roofs, total_time) for each in found),
        program=program_row(found, roofs, total_time),
        peaks=roofs.peaks,
        kernels=(),
        memory=memory_profile(hosts[0]),
    )


def _cores(planes: Sequence[Plane], host: int) -> list[Core]:
    for plane in planes:
        is_other = plane.name.startswith(_DEVICES) and not CORE.fullmatch(plane.name)
        if is_other and any(not line.is_empty for line in plane.lines):
            raise UnfamiliarError(plane.name)
    return [Core(plane, host) for plane in planes if CORE.fullmatch(plane.name)]


def _require_groups(hosts: Sequence[Sequence[Plane]], found: Sequence[Instruction]) -> None:
    """XProf numbers steps where that was not done, and makes idle time input where the host waits for input."""
    for planes in hosts:
        grouped = [plane for plane in planes if GROUP in plane.stat_ids]
        if not grouped:
            raise UnfamiliarError("steps without groups")
        if any(plane.name == _HOST for plane in grouped) and not any(each.category == "infeed" for each in found):
            raise UnfamiliarError("steps of the host")


def _summary(cores: Sequence[Core], steps: Sequence[MarkedStep], idle: float) -> Summary:
    device_type = cores[0].plane.stats.get("device_type_string", "")
    times = [step.time * MS_PER_PS for step in steps]
    mean = fmean(times) if times else 0.0
    spread = sum((time - mean) ** 2 for time in times)
    return Summary(
        device_type=device_type if isinstance(device_type, str) else "",
        device_core_count=len(cores),
        device_duty_cycle_percent=PERCENT * duty_cycle(cores),
        device_idle_time_percent=idle,
        steptime_ms_average=mean,
        steptime_ms_minimum=min(times, default=0.0),
        steptime_ms_maximum=max(times, default=0.0),
        steptime_ms_standard_deviation=(spread / (len(times) - 1)) ** 0.5 if len(times) > 1 else 0.0,
        infeed_percent_average=PERCENT * fmean(step.infeed for step in steps) if steps else 0.0,
    )
