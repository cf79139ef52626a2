"""What each kind of collective takes in each sort of process group: waiting, transfer, bandwidth, who is awaited."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from asap.traces.analysis.report import GroupReport, StragglerReport
from asap.traces.graph.graph import Graph
from asap.traces.trace import NS, Integers, Matched, bus_factor


def group_times(graph: Graph) -> list[GroupReport]:
    """By the time that they take in a step, as measured."""
    starts = [graph.measured[nodes.operation_start] for nodes in graph.nodes]
    ends = [graph.measured[nodes.operation_end] for nodes in graph.nodes]
    sorts: dict[tuple[str, str, int], list[Matched]] = defaultdict(list)
    for each in graph.trace.matched:
        name = each.group.description or each.group.name or "all ranks"
        sorts[each.kind, name, len(each.members)].append(each)
    found = [_times(graph, *key, matched, starts, ends) for key, matched in sorts.items()]
    return sorted(found, key=lambda each: -each.transfer_s - each.waiting_s)


def _times(
    graph: Graph, kind: str, name: str, size: int, matched: Sequence[Matched],
    starts: Sequence[Integers], ends: Sequence[Integers],
) -> GroupReport:  # fmt: skip
    transfer, waiting, moved, moving, calls = 0.0, 0.0, 0.0, 0.0, 0
    cost = np.zeros(len(graph.nodes))
    for each in matched:
        start, end = each.of(starts), each.of(ends)
        last = start.max(axis=0)
        taken, waited = (end - start).min(axis=0), last - start
        transfer += size * NS * float(taken.sum())
        waiting += NS * float(waited.sum())
        calls += size * each.collectives
        np.add.at(cost, each.members[start.argmax(axis=0)], waited.sum(axis=0))
        known = each.size_bytes > 0
        ranks = len(each.group.ranks) or size
        moved += bus_factor(kind, ranks) * float(each.size_bytes[known].sum())
        moving += NS * float(taken[known].sum())
    members = len({member for each in matched for member in each.members.tolist()}) * graph.trace.recorded_steps
    return GroupReport(
        kind=kind, group=name, size=size, groups=len({tuple(each.members.tolist()) for each in matched}),
        calls=round(calls / members), transfer_s=transfer / members, waiting_s=waiting / members,
        bus_bandwidth=moved / moving if moved and moving else None, awaited=graph.trace.ranks[int(cost.argmax())].rank,
    )  # fmt: skip


def stragglers(graph: Graph, times: Integers) -> list[StragglerReport]:
    """Ranks that came last to a collective, those that cost most first. Needs several ranks.

    Transfers between two ranks do not count: a stage of a pipeline waits for the one before whoever is slow.

    Args:
        graph: of all ranks.
        times: ``graph.measured`` or ``graph.replayed``.
    """
    starts = [times[nodes.operation_start] for nodes in graph.nodes]
    count, cost = np.zeros(len(starts), dtype=np.int64), np.zeros(len(starts))
    for each in graph.trace.matched:
        if each.between_two:
            continue
        start = each.of(starts)
        last = each.members[start.argmax(axis=0)]
        waited = (start.max(axis=0) - start).sum(axis=0) / (len(each.members) - 1)
        np.add.at(count, last, 1)
        np.add.at(cost, last, waited)
    second = NS / graph.trace.recorded_steps
    found = [
        StragglerReport(rank=rank.rank, last=int(count[place]), waited_for_s=second * float(cost[place]))
        for place, rank in enumerate(graph.trace.ranks)
        if count[place]
    ]
    return sorted(found, key=lambda straggler: -straggler.waited_for_s)
