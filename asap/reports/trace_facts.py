"""What a trace and its replay show, as columns and rows. Plain text, not escaped."""

from collections.abc import Sequence

from asap.core.text import plain
from asap.core.units import format_percent, format_seconds
from asap.traces.analysis.report import Quality, ReplayReport, TraceReport, WhatIfReport

Row = tuple[object, ...]
Table = tuple[Sequence[str], Sequence[Row]]

_CONTENTS = (
    "rank", "device", "steps", "threads", "streams", "calls", "operations", "collectives", "span", "unexplained",
)  # fmt: skip


def contents_table(report: TraceReport) -> Table:
    """What the trace of each rank holds."""
    rows = [
        (
            rank.rank if rank.world_size is None else f"{rank.rank} of {rank.world_size}",
            rank.device or "unknown",
            len(rank.steps),
            rank.threads,
            len(rank.streams),
            rank.calls,
            rank.operations,
            rank.collectives,
            format_seconds(rank.device_span_s),
            format_percent(rank.unexplained),
        )
        for rank in report.ranks
    ]
    return _CONTENTS, rows


def replay_tables(report: ReplayReport) -> list[Table]:
    """Times against measured, where the time goes, process groups, the critical path, and what would shorten it."""
    tables = [_times(report), _breakdown(report), _groups(report), _critical_path(report), _shortened(report)]
    return [table for table in tables if table[1]]


def straggler_sentences(report: ReplayReport) -> list[str]:
    """Who is slow, who came late, and what that cost the others."""
    now = format_seconds(report.step_time_s.replayed_s)
    slow = [
        f"rank {each.rank} is slow: its own work takes {format_percent(each.slower)} longer than that of ranks that do"
        f" the same; without that a step takes {format_seconds(each.step_time_s)} instead of {now}"
        for each in report.slow_ranks
    ]
    return (
        slow
        + _bubble_sentences(report)
        + [
            f"rank {each.rank} came last to {each.last} collectives; the others waited {_seconds(each.waited_for_s)}"
            for each in report.stragglers
        ]
    )


def _bubble_sentences(report: ReplayReport) -> list[str]:
    """The bubble of a pipeline, which is no slow rank."""
    shares = [(rank.breakdown.bubble_s or 0.0) / rank.breakdown.window_s for rank in report.ranks]
    mean = sum(shares) / len(shares)
    return [f"pipeline bubble: {format_percent(mean)} of the time, stages wait for each other"] if mean > 0 else []


def what_if_table(report: WhatIfReport) -> Table:
    """The step after the changes."""
    found, shares = report.step_time_s, report.shares
    rows = [
        ("measured", format_seconds(report.measured_s)),
        ("after " + ", ".join(report.changes), format_seconds(found.value)),
        ("interval", f"{format_seconds(found.low)} to {format_seconds(found.high)}"),
        ("speed-up", f"{report.speedup:.2f}x"),
        ("as traced", format_percent(shares.traced)),
        ("traced, then scaled", format_percent(shares.scaled)),
        ("modelled", format_percent(shares.modelled)),
    ]
    return ("step time", "value"), rows


def clock_sentence(spread_s: float) -> str:
    """How far the ranks agree on the time."""
    return f"clocks agree within {format_seconds(spread_s)}"


def quality_sentence(quality: Quality) -> str:
    """How far the graph can be believed."""
    said = f"quality: {quality.verdict}, {format_percent(quality.unexplained)} of the device's time unexplained"
    if not quality.unmatched:
        return said
    return f"{said}, {format_percent(quality.unmatched)} in collectives whose other ranks are not known"


def _times(report: ReplayReport) -> Table:
    rows = [
        (
            rank.rank,
            what,
            time.label or number,
            _seconds(time.measured_s),
            _seconds(time.replayed_s),
            f"{time.error:+.2%}",
        )
        for rank in report.ranks
        for what, times in (("step", rank.steps), ("on the device", rank.device_iterations))
        for number, time in enumerate(times)
    ]
    return ("rank", "what", "number", "measured", "replayed", "error"), rows


def _breakdown(report: ReplayReport) -> Table:
    rows = [
        (
            rank.rank,
            _seconds(part.exposed_compute_s),
            _seconds(part.exposed_communication_s),
            "unknown" if part.waiting_s is None else _seconds(part.waiting_s),
            _seconds(part.overlap_s),
            _seconds(part.host_s),
            _seconds(part.idle_s),
        )
        for rank in report.ranks
        for part in (rank.breakdown,)
    ]
    return ("rank", "computing", "communicating", "of it waiting", "both", "host-bound", "idle"), rows


def _groups(report: ReplayReport) -> Table:
    rows = [
        (
            each.kind,
            plain(each.group, 60),
            f"{each.groups} of {each.size}",
            each.calls,
            _seconds(each.transfer_s),
            _seconds(each.waiting_s),
            "unknown" if each.bus_bandwidth is None else f"{each.bus_bandwidth / 1e9:.3g} GB/s",
            each.awaited,
        )
        for each in report.groups
    ]
    return ("collective", "group", "groups", "calls", "transfer", "waiting", "bus bandwidth", "awaited rank"), rows


def _critical_path(report: ReplayReport) -> Table:
    rows = [
        (_seconds(part.time_s), format_percent(part.share), part.rank, part.category, part.name, part.occurrences)
        for part in report.critical_path
    ]
    return ("critical path", "share", "rank", "category", "what", "times"), rows


def _shortened(report: ReplayReport) -> Table:
    rows = [(each.change, _seconds(each.step_time_s)) for each in report.shortened_by]
    return ("change", f"step time, now {_seconds(report.step_time_s.replayed_s)}"), rows


def _seconds(value: float) -> str:
    return format_seconds(value) if value else "0"
