"""The tables of a CPU run: a device type and marked steps, which is all that XProf has of one."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, pstdev

from asap.profiles.cpu import CpuEvents, Mark
from asap.profiles.tpu.memory import memory_profile
from asap.profiles.xplane.planes import Plane
from asap.profiles.xprof.conversion import Conversion
from asap.profiles.xprof.tables import Peaks, StepRow, Summary

MS_PER_PS = 1e-9
_ENDS_LEFT_OUT_ABOVE = 5
_GROUPS_OF_TENSORFLOW = ("TraceContext", "FunctionRun", "SessionRun", "RunGraph", "ExecutorState::Process")
"""Events that XProf takes for steps where the training loop marks none."""


def convert_cpu(hosts: Sequence[Sequence[Plane]], events: CpuEvents) -> Conversion | None:
    """The tables that XProf would return, unrounded; None if only XProf can make them.

    Of more than five steps the first and the last are left out, which may be cut off or slowed by the start of the
    recording: ``ConvertStepEventsToStepDb`` of XProf.

    Raises:
        ProfileError: a file is damaged.
    """
    steps = None if _has_other_work(hosts) else _steps(events.marks, len(hosts))
    if steps is None:
        return None
    kept = steps[1:-1] if len(steps) > _ENDS_LEFT_OUT_ABOVE else steps
    times = [MS_PER_PS * (mark.end - mark.start) for mark in kept]
    return Conversion(
        summary=Summary(
            device_type="CPU",
            steptime_ms_average=fmean(times) if times else 0.0,
            steptime_ms_minimum=min(times, default=0.0),
            steptime_ms_maximum=max(times, default=0.0),
            steptime_ms_standard_deviation=pstdev(times) if times else 0.0,
        ),
        steps=tuple(StepRow(stepTimeMs=time) for time in times),
        operations=(),
        roofline=(),
        peaks=Peaks(),
        kernels=(),
        memory=memory_profile(hosts[0]),
    )


def _has_other_work(hosts: Sequence[Sequence[Plane]]) -> bool:
    """Whether something ran that is neither a CPU's nor marked by a step of JAX."""
    for plane in (plane for planes in hosts for plane in planes):
        if plane.name.startswith("/device:") and any(not line.is_empty for line in plane.lines):
            return True
        if any(name.startswith(_GROUPS_OF_TENSORFLOW) for name in plane.names.values()):
            return True
    return False


def _steps(marks: Sequence[Mark], hosts: int) -> list[Mark] | None:
    """In their order; None where marks overlap or a number comes twice, and where several hosts mark steps."""
    steps = sorted(marks, key=lambda mark: mark.number)
    orderly = all(one.number < other.number and one.end <= other.start for one, other in pairwise(steps))
    return steps if not steps or (hosts == 1 and orderly) else None
