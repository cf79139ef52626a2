"""Duty cycle, idle and input shares, communication: put together with the step time."""

from collections.abc import Sequence
from dataclasses import dataclass

from asap.core.units import PERCENT
from asap.profiles.operations import collectives_of
from asap.profiles.profile import Kpis, Operation
from asap.profiles.steps import Steps
from asap.profiles.xprof.tables import StepRow, Summary


@dataclass(frozen=True)
class Busy:
    """Shares of the time of a device, 0 to 1; ``None`` is unknown."""

    duty_cycle: float | None = None
    idle: float | None = None
    input: float | None = None


def tpu_busy(summary: Summary, operations: Sequence[Operation], steps: Steps | None) -> Busy:
    """XProf's percentages; the infeed share needs steps."""
    idle = _share(summary.device_idle_time_percent)
    return Busy(
        duty_cycle=_share(summary.device_duty_cycle_percent),
        idle=_unused(operations) if idle is None else idle,
        input=_share(summary.infeed_percent_average) if steps else None,
    )


def gpu_busy(rows: Sequence[StepRow], operations: Sequence[Operation]) -> Busy:
    """The parts of the marked steps; without steps what no operation uses is idle."""
    total = sum(row.duration or 0.0 for row in rows)
    if not total:
        return Busy(idle=_unused(operations))
    device = sum(row.compute + row.copies + row.collectives for row in rows) / total
    waits = sum(row.infeed + row.host + row.launch for row in rows) / total
    return Busy(duty_cycle=device, idle=max(1.0 - device - waits, 0.0), input=waits)


def kpis_from(steps: Steps | None, busy: Busy, operations: Sequence[Operation]) -> Kpis:
    """Put the KPIs together; without operations communication is unknown, not zero."""
    return Kpis(
        step_time_s=steps.mean if steps else None,
        step_time_min_s=steps.least if steps else None,
        step_time_max_s=steps.most if steps else None,
        step_time_stddev_s=steps.deviation if steps else None,
        steps=steps.count if steps else None,
        duty_cycle=busy.duty_cycle,
        idle=busy.idle,
        input=busy.input,
        communication=sum(op.fraction for op in operations if op.is_collective) if operations else None,
        collectives=collectives_of(operations),
    )


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / PERCENT


def _unused(operations: Sequence[Operation]) -> float | None:
    """Share of the window in which nothing ran; unknown where operations overlap and fill more than it."""
    used = sum(operation.fraction for operation in operations)
    return 1.0 - used if operations and used <= 1.0 else None
