"""Step times: from marked steps, or from the runs of the module that takes most of the time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from asap.profiles.xprof.tables import StepRow, Summary

MS = 1e-3
DOMINANT_SHARE = 0.5
"""Share of all module time above which one module is taken for the training step."""


@dataclass(frozen=True)
class Steps:
    """Step times in seconds."""

    mean: float
    least: float
    most: float
    deviation: float
    count: int


def marked_steps(summary: Summary, rows: Sequence[StepRow]) -> Steps | None:
    """Steps that the training loop marked. XProf rounds its averages: exact durations are better where it has them."""
    exact = [row.duration * MS for row in rows if row.duration]
    if exact:
        return _summarised(exact, len(exact))
    if not rows or not summary.steptime_ms_average:
        return None
    times = (
        summary.steptime_ms_average,
        summary.steptime_ms_minimum,
        summary.steptime_ms_maximum,
        summary.steptime_ms_standard_deviation,
    )
    return Steps(*((time or 0.0) * MS for time in times), count=len(rows))


def module_steps(modules: Mapping[str, Sequence[float]], devices: int) -> tuple[str, Steps] | None:
    """The module that took most of the time and ran more than once: one run is taken for one step.

    Args:
        modules: seconds of each run on each device.
        devices: that ran them.
    """
    total = sum(map(sum, modules.values()))
    for name, times in modules.items():
        if sum(times) > DOMINANT_SHARE * total and len(times) > devices > 0:
            return name, _summarised(times, len(times) // devices)
    return None


def _summarised(times: Sequence[float], count: int) -> Steps:
    mean = fmean(times)
    return Steps(mean, min(times), max(times), fmean((time - mean) ** 2 for time in times) ** 0.5, count)
