"""What the commands answer, from a trace and its graph."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from asap.core.errors import AsapError
from asap.core.text import plain
from asap.traces.analysis import report
from asap.traces.analysis.breakdown import Breakdown, RankTimes, breakdown, rank_times, step_parts
from asap.traces.analysis.critical_path import critical_path
from asap.traces.analysis.groups import group_times, stragglers
from asap.traces.analysis.iterations import Times, device_iterations, step_time, step_times
from asap.traces.analysis.modules import NO_MODULES, model_parts, module_times
from asap.traces.analysis.quality import require_explained, unexplained, unmatched_share, verdict
from asap.traces.graph.graph import Cause, Graph, RankNodes
from asap.traces.readers.operators import HostWork
from asap.traces.trace import NS, OperationKind, RankTrace
from asap.traces.what_if.apply import apply
from asap.traces.what_if.change import parse_change
from asap.traces.what_if.predict import WORTH_NAMING, WhatIfPrediction, slow_ranks

NAME_LENGTH = 120
PATH_PARTS = 20
QUESTIONS = (
    "remove:communication", "remove:all-to-all", "remove:compute", "remove:attention", "remove:host",
    "remove:dataloader", "remove:copy",
)  # fmt: skip
OF_SEVERAL_RANKS = "even:compute"
"""Asked where ranks can be compared: what stragglers and uneven stages cost."""


def describe(graph: Graph) -> report.TraceReport:
    """What a trace holds and how well it is explained."""
    trace = graph.trace
    ranks = [_contents(rank, share) for rank, share in zip(trace.ranks, unexplained(graph), strict=True)]
    spread, notes = trace.clock_spread_s, list(trace.notes)
    return report.TraceReport(
        format=trace.format, ranks=ranks, clock_spread_s=spread, quality=_quality(graph), notes=notes
    )


def report_replay(graph: Graph, hosts: Mapping[int, HostWork] | None = None) -> report.ReplayReport:
    """How the graph replays, where the time of each rank goes and what decides it; of the model only where ``hosts``
    were read."""
    trace = graph.trace
    measured, replayed = rank_times(graph, graph.measured), rank_times(graph, graph.replayed)
    columns = (trace.ranks, graph.nodes, measured, replayed, unexplained(graph))
    path, steps = critical_path(graph), graph.trace.recorded_steps
    return report.ReplayReport(
        format=trace.format, step_time_s=_timing(step_time(graph)), recorded_steps=steps,
        ranks=[_rank(graph, *row) for row in zip(*columns, strict=True)], quality=_quality(graph),
        clock_spread_s=trace.clock_spread_s, matched_collectives=sum(each.collectives for each in graph.trace.matched),
        slow_ranks=slow_ranks(graph), groups=group_times(graph), stragglers=stragglers(graph, graph.measured),
        critical_path=[_named(part, steps) for part in path[:PATH_PARTS]], critical_path_shares=_by_category(path),
        model_parts=model_parts(graph, hosts or {}), shortened_by=_shortened(graph), notes=list(trace.notes),
    )  # fmt: skip


def what_if_report(
    graph: Graph, changes: Sequence[str], found: WhatIfPrediction, hosts: Mapping[int, HostWork] | None = None
) -> report.WhatIfReport:
    """What the command answers for a prediction; of modules only where ``hosts`` were read."""
    assert found.graph is not None
    now, after = (module_times(each, each.replayed, hosts or {}) for each in (graph, found.graph))
    return report.WhatIfReport(
        changes=[plain(change, NAME_LENGTH) for change in changes], measured_s=found.measured,
        replayed_s=found.replayed, step_time_s=report.Estimate(value=found.value, low=found.low, high=found.high),
        speedup=found.measured / found.value,
        shares=report.PathShares(traced=found.traced, scaled=found.scaled, modelled=found.modelled),
        now=step_parts(graph, found.measured), after=_parts_after(found), critical_path_shares=_changed_path(found),
        modules={plain(name, NAME_LENGTH): (seconds, after[name]) for name, seconds in now.items() if name in after},
        quality=_quality(graph),
        notes=[*graph.trace.notes, *filter(None, [found.note, NO_MODULES if hosts and not now else None])],
    )  # fmt: skip


def _parts_after(found: WhatIfPrediction) -> report.StepParts:
    """What comes on top of the changed graph is added to its parts; less bubble than it holds is none."""
    assert found.graph is not None
    parts = step_parts(found.graph, found.value - sum(found.added))
    bubble = parts.bubble_s + found.added.bubble_s
    update = {"communication_s": parts.communication_s + found.added.communication_s, "bubble_s": max(bubble, 0.0)}
    return parts.model_copy(update=update | {"idle_s": parts.idle_s + min(bubble, 0.0)})


def _changed_path(found: WhatIfPrediction) -> dict[str, float]:
    assert found.graph is not None
    left = 1 - found.modelled
    shares = {name: left * share for name, share in _by_category(critical_path(found.graph)).items()}
    return shares | ({"modelled": found.modelled} if found.modelled else {})


def _named(part: report.PathPart, steps: int) -> report.PathPart:
    return part.model_copy(update={"name": plain(part.name, NAME_LENGTH), "time_s": part.time_s / steps})


def _by_category(path: Sequence[report.PathPart]) -> dict[str, float]:
    shares: defaultdict[str, float] = defaultdict(float)
    for part in path:
        shares[part.category] += part.share
    return dict(sorted(shares.items(), key=lambda share: -share[1]))


def _shortened(graph: Graph) -> list[report.Shortening]:
    found, now = [], step_time(graph).replayed_s
    several = len(graph.trace.ranks) > 1 and not any(rank.groups_unknown for rank in graph.trace.ranks)
    for question in (*QUESTIONS, *([OF_SEVERAL_RANKS] if several else [])):
        try:
            require_explained(graph)
            changed = apply(graph, [parse_change(question)])
        except AsapError:
            continue
        left = step_time(changed.graph).replayed_s
        if 0 < left < (1 - WORTH_NAMING) * now:
            found.append(report.Shortening(change=question, step_time_s=left))
    return sorted(found, key=lambda shortening: shortening.step_time_s)


def _quality(graph: Graph) -> report.Quality:
    worst = max(unexplained(graph))
    inferred = int((graph.edges.cause == Cause.INFERRED).sum())
    return report.Quality(
        verdict=verdict(graph), unexplained=worst, unmatched=unmatched_share(graph), inferred_waits=inferred
    )


def _contents(rank: RankTrace, share: float) -> report.RankContents:
    return report.RankContents(
        rank=rank.rank, world_size=rank.world_size, device=rank.device,
        steps=[plain(step.label, NAME_LENGTH) for step in rank.steps], threads=len(set(rank.calls.lane.tolist())),
        streams=[plain(rank.lanes[lane], NAME_LENGTH) for lane in sorted(set(rank.operations.lane.tolist()))],
        calls=len(rank.calls), operations=len(rank.operations), unexplained=share, device_span_s=NS * rank.device_span,
        collectives=int((rank.operations.kind == OperationKind.COMMUNICATION).sum()),
    )  # fmt: skip


def _rank(
    graph: Graph, rank: RankTrace, nodes: RankNodes, measured: RankTimes, replayed: RankTimes, share: float
) -> report.RankReport:
    marked = zip(rank.steps, step_times(graph, nodes), strict=True) if rank.step_lane >= 0 else ()
    communicates = bool((rank.operations.kind == OperationKind.COMMUNICATION).any())
    waits_known, steps = bool(graph.trace.matched) or not communicates, graph.trace.recorded_steps
    return report.RankReport(
        rank=rank.rank, device=rank.device, unexplained=share,
        steps=[_timing(times, step.label) for step, times in marked],
        device_iterations=[_timing(times) for times in device_iterations(graph, rank, nodes)],
        breakdown=_parts(breakdown(rank, replayed), steps, waits_known),
        measured_breakdown=_parts(breakdown(rank, measured), steps, waits_known),
    )  # fmt: skip


def _timing(times: Times, label: str = "") -> report.Timing:
    return report.Timing(label=plain(label, NAME_LENGTH), error=times.error, **times._asdict())


def _parts(found: Breakdown, steps: int, waits_known: bool) -> report.Parts:
    by_kind = {kind: time / steps for kind, time in found.exposed_by_collective_s.items()}
    seconds = {name: time / steps for name, time in found._asdict().items() if name != "exposed_by_collective_s"}
    parts = report.Parts(window_s=found.window_s / steps, exposed_by_collective_s=by_kind, **seconds)
    return parts if waits_known else parts.model_copy(update={"waiting_s": None, "bubble_s": None})
