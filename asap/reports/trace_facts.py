"""What a trace and its replay show, as columns and rows. Plain text, not escaped."""

from collections.abc import Iterable, Sequence
from statistics import median

from asap.core.text import plain
from asap.core.units import exact, format_change, format_percent, format_rate, format_seconds, significant
from asap.traces.analysis.report import Quality, ReplayReport, Timing, TraceReport, WhatIfReport

Row = tuple[object, ...]
Table = tuple[Sequence[str], Sequence[Row]]

ALIKE = 0.05
"""Of the largest value: ranks that differ by less are one row."""

TELLING = 0.01
"""Of the critical path: smaller parts are one row."""

MODULE = 0.02
"""Of all operations: modules that take less are not shown."""

NAMED = 60
"""Characters of a kernel's name."""

RANGES = 4
"""So many ranges of ranks are named."""

LATE_RANKS = 3
"""So many ranks that came late are named."""

_CONTENTS = (
    "rank", "device", "steps", "threads", "streams", "calls", "operations", "collectives", "span", "unexplained",
)  # fmt: skip


def contents_table(report: TraceReport) -> Table:
    """What the trace of each rank holds."""
    rows = [
        (
            rank.rank if rank.world_size is None else f"{rank.rank} of {rank.world_size}",
            rank.device or "unknown", len(rank.steps), rank.threads, len(rank.streams), rank.calls, rank.operations,
            rank.collectives, format_seconds(rank.device_span_s), format_percent(rank.unexplained),
        )
        for rank in report.ranks
    ]  # fmt: skip
    return _CONTENTS, rows


def replay_tables(report: ReplayReport) -> list[Table]:
    """Times against measured, where the time goes, process groups, the critical path, and what would shorten it."""
    tables = [of(report) for of in (_times, _breakdown, _model, _groups, _critical_path, _shortened)]
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
            f"rank {each.rank} came last to {each.last} of {report.matched_collectives} collectives; the others waited"
            f" {_seconds(each.waited_for_s)} a step"
            for each in report.stragglers[:LATE_RANKS]
        ]
        + (
            [f"{later} more ranks came last to a collective"]
            if (later := len(report.stragglers) - LATE_RANKS) > 0
            else []
        )
    )


def _bubble_sentences(report: ReplayReport) -> list[str]:
    """The bubble of a pipeline, which is no slow rank."""
    shares = [(rank.breakdown.bubble_s or 0.0) / rank.breakdown.window_s for rank in report.ranks]
    mean = sum(shares) / len(shares)
    return [f"pipeline bubble: {format_percent(mean)} of the time, stages wait for each other"] if mean > 0 else []


def what_if_tables(report: WhatIfReport) -> list[Table]:
    """The step after the changes, what a device does in it, and what decides it."""
    found, shares = report.step_time_s, report.shares
    rows = [
        ("measured", format_seconds(report.measured_s)),
        ("after " + ", ".join(report.changes), format_seconds(found.value)),
        ("interval", f"{format_seconds(found.low)} to {format_seconds(found.high)}"),
        ("speed-up", f"{significant(report.speedup)} times"),
        ("as traced", format_percent(shares.traced)),
        ("traced, then scaled", format_percent(shares.scaled)),
        ("modelled", format_percent(shares.modelled)),
    ]
    pairs = zip(report.now.model_dump().items(), report.after.model_dump().values(), strict=True)
    parts = [(name[:-2], _seconds(now), _seconds(after)) for (name, now), after in pairs if now or after]
    path = [(name, format_percent(share)) for name, share in report.critical_path_shares.items() if share > TELLING]
    modules = [(plain(name, NAMED), _seconds(now), _seconds(after)) for name, (now, after) in report.modules.items()]
    tables: list[Table] = [
        (("step time", "value"), rows),
        (("device that works longest", "now", "after"), parts),
        (("operations of module", "now", "after"), modules),
        (("critical path after", "share"), path),
    ]
    return [table for table in tables if table[1]]


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
        (ranks, what, exact(count), _seconds(measured), _seconds(replayed), format_change(1 + error, 2))
        for what, times_of in (
            ("marked by the host", lambda rank: rank.steps),
            ("on the device", lambda rank: rank.device_iterations),
        )
        for ranks, (measured, replayed, count, error) in _alike(
            (rank.rank, _typical(times_of(rank))) for rank in report.ranks if times_of(rank)
        )
    ]
    step = report.step_time_s
    whole = ("", "step time", "", _seconds(step.measured_s), _seconds(step.replayed_s), f"{step.error:+.2%}")
    return ("rank", "what", "steps", "measured", "replayed", "largest error"), [whole, *rows]


def _typical(times: Sequence[Timing]) -> tuple[float, ...]:
    """Measured and replayed time, the median over steps; how many steps these are; the largest error."""
    return (
        median(time.measured_s for time in times),
        median(time.replayed_s for time in times),
        len(times),
        max((time.error for time in times), key=abs),
    )


def _alike(ranks: Iterable[tuple[int, Sequence[float]]]) -> list[tuple[str, tuple[float, ...]]]:
    """Ranks whose first values are nearly the same as one row: which ranks, and the median of each value."""
    groups: list[list[tuple[int, Sequence[float]]]] = []
    for rank, values in ranks:
        near = next((group for group in groups if _near(group[0][1], values)), None)
        if near is None:
            groups.append(near := [])
        near.append((rank, values))
    named = [(_ranks([rank for rank, _ in group]), [values for _, values in group]) for group in groups]
    return [(ranks, tuple(median(column) for column in zip(*rows, strict=True))) for ranks, rows in named]


def _near(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(abs(a - b) <= ALIKE * max(*one, *other) for a, b in zip(one, other, strict=True))


def _ranks(ranks: Sequence[int]) -> str:
    """``0-3, 7``, and how many these are."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    shown = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs[:RANGES])
    shown += ", …" if len(runs) > RANGES else ""
    return shown if len(ranks) == 1 else f"{shown} ({len(ranks)})"


def _breakdown(report: ReplayReport) -> Table:
    parts = (
        (
            rank.rank,
            (part.exposed_compute_s, part.exposed_communication_s, part.waiting_s or 0.0, part.overlap_s, part.host_s,
             part.idle_s),
        )
        for rank in report.ranks
        for part in (rank.breakdown,)
    )  # fmt: skip
    unknown = any(rank.breakdown.waiting_s is None for rank in report.ranks)
    rows = []
    for ranks, values in _alike(parts):
        row = [_seconds(value) for value in values]
        whole = _seconds(sum(values[:2]) + sum(values[3:]))
        rows.append((ranks, *row[:2], "unknown" if unknown else row[2], *row[3:], whole))
    return ("rank", "computing", "communicating", "of it waiting", "both", "host-bound", "idle", "in a step"), rows


def _model(report: ReplayReport) -> Table:
    """A row for microbatches, one for layers, and the modules that take most."""
    whole = sum(each.time_s for each in report.model_parts if each.part == "module")
    rows = [
        (each.part, plain(each.name, NAMED), each.count or "", _seconds(each.time_s),
         _seconds(each.time_s / each.count) if each.count else "", _seconds(each.longest_s) if each.longest_s else "")
        for each in report.model_parts
        if each.time_s >= MODULE * whole
    ]  # fmt: skip
    return ("part of the model", "name", "number", "in a step", "each", "longest"), rows


def _groups(report: ReplayReport) -> Table:
    rows = [
        (each.kind, plain(each.group, 60), f"{each.groups} of {each.size}", each.calls, _seconds(each.transfer_s),
         _seconds(each.waiting_s), "unknown" if each.bus_bandwidth is None else format_rate(each.bus_bandwidth, "B/s"),
         each.awaited)
        for each in report.groups
    ]  # fmt: skip
    heads = "collective", "group", "groups", "calls a step", "transfer", "waiting", "bus bandwidth", "awaited rank"
    return heads, rows


def _critical_path(report: ReplayReport) -> Table:
    shown = [part for part in report.critical_path if part.share >= TELLING]
    rows: list[Row] = [
        (_seconds(part.time_s), format_percent(part.share), part.rank, part.category, plain(part.name, NAMED),
         significant(part.occurrences / report.recorded_steps))
        for part in shown
    ]  # fmt: skip
    left = 1 - sum(part.share for part in shown)
    if shown and left >= TELLING:
        whole = shown[0].time_s / shown[0].share
        rows.append(
            (_seconds(left * whole), format_percent(left), "", "", f"parts below {format_percent(TELLING, 0)}", "")
        )
    return ("critical path of a step", "share", "rank", "category", "what", "times"), rows


def _shortened(report: ReplayReport) -> Table:
    rows = [(each.change, _seconds(each.step_time_s)) for each in report.shortened_by]
    return ("change", f"step time, now {_seconds(report.step_time_s.replayed_s)}"), rows


def _seconds(value: float) -> str:
    return format_seconds(value) if value else "0"
