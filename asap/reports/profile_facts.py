"""A profile in short plain phrases: KPIs, operations, roofline. Plain text, not escaped."""

from collections.abc import Iterable

from asap.core.text import plain
from asap.core.units import exact, format_bytes, format_percent, format_rate, format_seconds, significant
from asap.profiles import Kpis, Operation, Roofline
from asap.profiles.profile import Total

UNKNOWN = "unknown"
NAME_WIDTH = 48


def kpi_facts(kpis: Kpis) -> list[tuple[str, str]]:
    """Label and value of each KPI that is known."""
    found = [
        ("step time", format_seconds(kpis.step_time_s) if kpis.step_time_s is not None else UNKNOWN),
        ("duty cycle", _share(kpis.duty_cycle)),
        ("communication", _share(kpis.communication)),
        ("idle", _share(kpis.idle)),
        ("input or host", _share(kpis.input)),
        ("goodput", _share(kpis.goodput)),
    ]
    return [(label, value) for label, value in found if value != UNKNOWN]


def operation_cells(operation: Operation) -> tuple[str, str, str, str]:
    """Share of the time, bound, roofline efficiency and name of an operation."""
    bound = "opaque" if operation.opaque else resource_name(operation.bound)
    efficiency = "" if operation.opaque else _share(operation.roofline_efficiency, "")
    return format_percent(operation.fraction, 2), bound, efficiency, operation.name


def operation_columns(extent: str) -> tuple[str, ...]:
    """Names of the columns of :func:`operation_row`."""
    times = ("time", f"per {extent}", "times")
    return (*times, "FLOP util.", "HBM", "category", "operation", "shape", "source")


def operation_row(operation: Operation) -> tuple[str, ...]:
    """An operation as `asap profile ops` lists it."""
    return (
        format_percent(operation.fraction, 2),
        format_seconds(operation.time_s) if operation.time_s is not None else "",
        exact(operation.occurrences) if operation.occurrences is not None else "",
        _share(operation.flop_utilisation, ""),
        format_rate(operation.memory_bandwidth, "B/s") if operation.memory_bandwidth is not None else "",
        operation.category,
        plain(operation.name, NAME_WIDTH),
        plain(operation.shape or "", NAME_WIDTH),
        operation.source or "",
    )


def roofline_facts(roofline: Roofline) -> list[tuple[str, str]]:
    """The roof and the program under it."""
    flops, bandwidth = roofline.peak_flop_rate, roofline.peak_hbm_bandwidth
    return [
        ("peak FLOP rate", format_rate(flops, "FLOP/s") if flops else UNKNOWN),
        ("peak HBM bandwidth", format_rate(bandwidth, "B/s") if bandwidth else UNKNOWN),
        ("ridge point", f"{significant(roofline.ridge_point)} FLOP/byte" if roofline.ridge_point else UNKNOWN),
        ("bound", roofline.program_bound),
        ("efficiency", _share(roofline.program_efficiency)),
    ]


def roofline_columns(extent: str) -> tuple[str, ...]:
    """Names of the columns of :func:`roofline_row`."""
    return "time", "saves at most", f"FLOPs per {extent}", f"bytes per {extent}", "bound", "of roofline", "operation"


def roofline_row(operation: Operation) -> tuple[str, ...]:
    """An operation as `asap profile roofline` lists it."""
    share, bound, efficiency, name = operation_cells(operation)
    flops = format_rate(operation.flops, "FLOP") if operation.flops is not None else ""
    moved = format_bytes(operation.bytes_accessed) if operation.bytes_accessed is not None else ""
    saves = format_percent(operation.recoverable, 2) if operation.recoverable is not None else ""
    return share, saves, flops, moved, bound, efficiency, plain(name, NAME_WIDTH)


def by_recoverable(operations: Iterable[Operation]) -> list[Operation]:
    """Operations by what they would save on the roofline, the most first; then those whose efficiency is not known."""
    return sorted(operations, key=lambda one: -1.0 if one.recoverable is None else one.recoverable, reverse=True)


def total_rows(totals: Iterable[Total], seconds: float | None, most: int) -> list[tuple[str, str, str]]:
    """Share and time of each sort of operations, the first ones; ``seconds`` is what a share of one takes."""
    return [
        (format_percent(one.fraction, 2), format_seconds(one.fraction * seconds) if seconds else "", one.name)
        for one in list(totals)[:most]
    ]


def _share(fraction: float | None, unknown: str = UNKNOWN) -> str:
    return unknown if fraction is None else format_percent(fraction)


def resource_name(value: str) -> str:
    """A bottleneck, or what an operation is bound by, as people write it: ``HBM``, ``host transfer``."""
    return {"hbm": "HBM", "vmem": "VMEM"}.get(value) or value.replace("_", " ")
