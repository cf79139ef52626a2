"""The tables of a TPU run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from asap.core.units import PERCENT
from asap.profiles.cpu import MS_PER_PS
from asap.profiles.totals import HOST
from asap.profiles.tpu.core import (
    CORE,
    GROUP,
    Core,
    MarkedStep,
    UnfamiliarError,
    busy_time,
    marked_steps,
    steps_of_host,
)
from asap.profiles.tpu.instructions import Instruction, instructions, together
from asap.profiles.tpu.roofline import Roofs, hlo_row, program_row
from asap.profiles.xplane.planes import Plane, Value
from asap.profiles.xprof.converter import Conversion
from asap.profiles.xprof.tables import MemoryProfile, StepRow, Summary

_DEVICES = ("/device:TPU:", "/device:GPU:", "/device:CUSTOM:")


@dataclass(frozen=True)
class TpuHost:
    """What the cores of a host did; times in picoseconds.

    ``facts`` are those of a core. ``marks_steps`` says whether a core did, ``has_groups`` whether events are grouped by
    step, and ``groups_host`` whether those of the host are. ``started`` says which steps the start-up of the job takes,
    left out.
    """

    cores: int
    facts: Mapping[str, Value]
    instructions: Sequence[Instruction]
    steps: Mapping[int, MarkedStep]
    busy: int
    whole: int
    total_time: int
    marks_steps: bool
    has_groups: bool
    groups_host: bool
    started: str


def read_tpu(planes: Sequence[Plane]) -> TpuHost | None:
    """Read the cores of a host; None if only XProf can.

    Raises:
        ProfileError: the file is damaged.
    """
    try:
        cores = _cores(planes)
        grouped = [plane.name for plane in planes if GROUP in plane.stat_ids]
        return TpuHost(
            len(cores),
            cores[0].plane.stats if cores else {},
            instructions(cores),
            steps_of_host(cores),
            *busy_time(cores),
            total_time=sum(core.total_time for core in cores),
            marks_steps=any(core.has_steps for core in cores),
            has_groups=bool(grouped),
            groups_host=HOST in grouped,
            started=next((core.started for core in cores if core.started), ""),
        )
    except UnfamiliarError:
        return None


def convert_tpu(hosts: Sequence[TpuHost | None], memory: MemoryProfile) -> Conversion | None:
    """The tables that XProf would return, unrounded; None if only XProf can make them.

    Args:
        hosts: all of a run.
        memory: of the first.
    """
    known = [host for host in hosts if host is not None]
    try:
        return _converted(known, memory) if len(known) == len(hosts) else None
    except UnfamiliarError:
        return None


def _converted(hosts: Sequence[TpuHost], memory: MemoryProfile) -> Conversion:
    found = together(each for host in hosts for each in host.instructions)
    if not found:
        raise UnfamiliarError("no operations")
    if any(host.marks_steps for host in hosts):
        _require_groups(hosts, found)
    steps = marked_steps([host.steps for host in hosts])
    facts = next(host.facts for host in hosts if host.cores)
    roofs = Roofs.of(facts)
    total_time, whole = sum(host.total_time for host in hosts), sum(host.whole for host in hosts)
    device_type = facts.get("device_type_string", "")
    return Conversion(
        summary=Summary(
            device_type=device_type if isinstance(device_type, str) else "",
            device_core_count=sum(host.cores for host in hosts),
            device_duty_cycle_percent=PERCENT * sum(host.busy for host in hosts) / whole if whole else 0.0,
            device_idle_time_percent=PERCENT * (1 - sum(each.own_time for each in found) / total_time)
            if total_time
            else 0.0,
            **_times(steps),
        ),
        steps=tuple(StepRow() for _ in steps),
        operations=tuple(hlo_row(each, roofs, total_time) for each in found),
        program=program_row(found, roofs, total_time),
        peaks=roofs.peaks,
        memory=memory,
    )


def _cores(planes: Sequence[Plane]) -> list[Core]:
    for plane in planes:
        is_other = plane.name.startswith(_DEVICES) and not CORE.fullmatch(plane.name)
        if is_other and any(not line.is_empty for line in plane.lines):
            raise UnfamiliarError(plane.name)
    return [Core(plane) for plane in planes if CORE.fullmatch(plane.name)]


def _require_groups(hosts: Sequence[TpuHost], found: Sequence[Instruction]) -> None:
    """XProf numbers steps where that was not done, and makes idle time input where the host waits for input."""
    if not all(host.has_groups for host in hosts):
        raise UnfamiliarError("steps without groups")
    if any(host.groups_host for host in hosts) and not any(each.category == "infeed" for each in found):
        raise UnfamiliarError("steps of the host")


def _times(steps: Sequence[MarkedStep]) -> dict[str, float]:
    """In milliseconds, and the share of input in percent."""
    times = [step.time * MS_PER_PS for step in steps]
    mean = fmean(times) if times else 0.0
    spread = sum((time - mean) ** 2 for time in times)
    return {
        "steptime_ms_average": mean,
        "steptime_ms_minimum": min(times, default=0.0),
        "steptime_ms_maximum": max(times, default=0.0),
        "steptime_ms_standard_deviation": (spread / (len(times) - 1)) ** 0.5 if len(times) > 1 else 0.0,
        "infeed_percent_average": PERCENT * fmean(step.infeed for step in steps) if steps else 0.0,
    }
