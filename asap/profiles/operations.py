"""Operations from XProf's tables, from GPU kernels, and from the events of a CPU."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from asap.core.units import GIB, PERCENT
from asap.profiles.collectives import (
    base_name,
    bound_of_kernel,
    collective_of,
    is_host_copy,
    is_input,
    opcode,
    result_shape,
    work_of_kernel,
)  # fmt: skip
from asap.profiles.profile import Bound, Collective, CollectiveKind, Extent, Operation
from asap.profiles.totals import CpuInstruction, Total
from asap.profiles.xprof.converter import Conversion
from asap.profiles.xprof.tables import HloRow, KernelRow, Peaks, StepRow, Summary

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


US = 1e-6


@dataclass(frozen=True)
class Scale:
    """What sums are divided by.

    Args:
        devices: that the sums run over.
        window_s: of one device, idle time included; ``None`` is unknown, and then there must be steps.
        steps: that were marked; without them everything is per window.
    """

    devices: int
    window_s: float | None
    marked: Steps | None = None

    @property
    def extent(self) -> Extent:
        """What times are per."""
        return "step" if self.marked else "window"

    @property
    def steps(self) -> float:
        """Steps in the window: those that were marked, or as many as fit where it holds others or has cut some off.

        Nothing may run as the first begins and the last ends, so the window may lack up to one.
        """
        if self.marked is None:
            return 1.0
        fitting = (self.window_s or self.marked.count * self.marked.mean) / self.marked.mean
        return self.marked.count if -1 < fitting - self.marked.count < 0.5 else fitting

    def each(self, total: float) -> float:
        """Of a sum over all, the part of one device and step (or window)."""
        return total / self.devices / self.steps

    def fraction(self, total_s: float) -> float:
        """Share of the step (or window) that a sum of times makes up."""
        whole_s = self.marked.mean if self.marked else self.window_s
        return self.each(total_s) / whole_s if whole_s else 0.0


GIGA = 1e9
_NO_OPERATION = ("", "XlaModule")
"""Names of what no operation is known for; the second of all kernels of a CUDA graph."""
_ASYNC = ("-start", "-done")
_BOUNDS: dict[str, Bound] = {"Compute": "compute", "HBM": "hbm"}


def hlo_operations(conversion: Conversion, scale: Scale) -> tuple[Operation, ...]:
    """HLO operations, longest self time first."""
    return longest_first(_hlo_operation(row, conversion.peaks, scale) for row in conversion.operations)


def _hlo_operation(row: HloRow, peaks: Peaks, scale: Scale) -> Operation:
    collective, waits = collective_of(row.hlo_op_name, row.category, row.hlo_op_expression)
    host_copy = is_host_copy(row.category, row.hlo_op_expression)
    opaque = _is_opaque(row) and not (collective or waits or host_copy)
    time_s = scale.each(row.total_self_time * US)
    bound = bound_of_kernel(row.hlo_op_name) if opaque else bound_of(row.bound_by)
    return Operation(
        name=row.hlo_op_name, category=row.category, fraction=row.total_self_time_percent / PERCENT, time_s=time_s,
        occurrences=scale.each(row.occurrences), bound="host" if host_copy or is_input(row.category) else bound,
        bound_by_name=opaque and bound != "unknown", operator=row.tf_op_name or None, opaque=opaque,
        shape=result_shape(row.hlo_op_expression), source=row.source_info or None, collective=collective,
        collective_wait=waits, host_copy=host_copy, kernels=row.kernels,
        **({} if opaque or _is_hidden(row, peaks) else _rates(row, peaks, time_s, host_copy)),
    )  # fmt: skip


def _rates(row: HloRow, peaks: Peaks, time_s: float, host_copy: bool) -> dict[str, Any]:
    flop_rate, bandwidth = row.model_flop_rate * GIGA, row.hbm_bw * GIB
    if host_copy:
        return {"bytes_accessed": bandwidth * time_s, "memory_bandwidth": bandwidth}
    peak_flop_rate, peak_bandwidth = si_peaks(peaks)
    return {
        "flops": flop_rate * time_s,
        "flop_rate": flop_rate,
        "flop_utilisation": flop_rate / peak_flop_rate if peak_flop_rate else None,
        "bytes_accessed": bandwidth * time_s,
        "memory_bandwidth": bandwidth,
        "memory_utilisation": bandwidth / peak_bandwidth if peak_bandwidth else None,
        "roofline_efficiency": row.roofline_efficiency,
    }


def _is_hidden(row: HloRow, peaks: Peaks) -> bool:
    """Half of an asynchronous pair whose bytes moved beside other operations: faster than HBM, so not in its time."""
    return row.category.endswith(_ASYNC) and row.hbm_bw > (peaks.peak_hbm_bw or math.inf)


def kernel_operations(kernels: Iterable[KernelRow], scale: Scale) -> tuple[Operation, ...]:
    """GPU kernels where no HLO operation tells of them: times, and what their names say that bounds them."""
    return longest_first(
        _timed(
            row.kernel_name if row.op_name in _NO_OPERATION else row.op_name,
            "kernel",
            Total(row.total_duration_us * US, row.occurrences),
            scale,
            bound=bound_of_kernel(row.kernel_name),
            collective=work_of_kernel(row.kernel_name).collective,
        )
        for row in kernels
    )


def host_copy_operations(copies: Mapping[str, Total], scale: Scale) -> tuple[Operation, ...]:
    """Copies on the streams of GPUs, as far as no kernel ran beside them."""
    return tuple(
        _timed(name, "host copy", copied, scale, bound="host", host_copy=True) for name, copied in copies.items()
    )


def cpu_operations(totals: Mapping[CpuInstruction, Total], scale: Scale) -> tuple[Operation, ...]:
    """Operations of virtual devices: times only; the category comes from the name of the instruction."""
    return longest_first(_cpu_operation(instruction, total, scale) for instruction, total in totals.items())


def _cpu_operation(instruction: CpuInstruction, total: Total, scale: Scale) -> Operation:
    name = instruction.name
    collective, waits = collective_of(name)
    base = base_name(name).removeprefix("wrapped_")
    category = "fusion" if base.endswith("fusion") else base
    path = instruction.path or None
    return _timed(name, category, total, scale, collective=collective, collective_wait=waits, operator=path)


def _timed(name: str, category: str, total: Total, scale: Scale, **facts: Any) -> Operation:
    return Operation(
        name=name,
        category=category,
        fraction=scale.fraction(total.seconds),
        time_s=scale.each(total.seconds),
        occurrences=scale.each(total.occurrences),
        **facts,
    )


def collectives_of(operations: Iterable[Operation]) -> tuple[Collective, ...]:
    """Sum collectives by kind, largest first. A start and its done are one occurrence."""
    kinds: dict[CollectiveKind, list[Operation]] = {}
    for operation in operations:
        if operation.collective:
            kinds.setdefault(operation.collective, []).append(operation)
    summed = (
        Collective(
            kind=kind,
            fraction=sum(op.fraction for op in members),
            time_s=sum(op.time_s or 0.0 for op in members),
            occurrences=max(
                sum(op.occurrences or 0.0 for op in members if op.collective_wait == waits) for waits in (True, False)
            ),
        )
        for kind, members in kinds.items()
    )
    return tuple(sorted(summed, key=lambda collective: -collective.fraction))


def bound_of(text: str) -> Bound:
    """XProf's word for a bound: on-chip memories count as one."""
    if text.startswith(("VMEM", "CMEM", "Shm")):
        return "vmem"
    return _BOUNDS.get(text, "unknown")


def si_peaks(peaks: Peaks) -> tuple[float | None, float | None]:
    """FLOP/s and bytes/s of one core; zero is XProf's word for unknown."""
    return (
        peaks.peak_flop_rate * GIGA if peaks.peak_flop_rate else None,
        peaks.peak_hbm_bw * GIB if peaks.peak_hbm_bw else None,
    )


def _is_opaque(row: HloRow) -> bool:
    """A custom call without a cost estimate: XProf then reports neither FLOPs nor a bound."""
    custom = "custom-call" in (row.category, opcode(row.hlo_op_expression))
    return custom and not row.model_flop_rate and bound_of(row.bound_by) == "unknown"


def longest_first(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    """Sorted by self time."""
    return tuple(sorted(operations, key=lambda operation: -operation.fraction))
