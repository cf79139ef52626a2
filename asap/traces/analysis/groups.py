"""What each kind of collective takes in each sort of process group: waiting, transfer, bandwidth, who is awaited."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from asap.traces.collectives import Matched
from asap.traces.graph.graph import Graph
from asap.traces.trace import NS, Integers, bus_factor


class GroupTimes(NamedTuple):
    """Collectives of a kind in all groups of one sort; seconds are of a rank, means over ranks."""

    kind: str
    group: str
    """What its maker calls it (tensor parallel, data parallel), or its name."""
    size: int
    """Ranks in each."""
    groups: int
    calls: int
    transfer_s: float
    waiting_s: float
    bus_bandwidth: float | None
    """Bytes a second on the slowest link, while nobody waits; None where sizes are not known."""
    awaited: int
    """The rank that others waited for longest."""


def group_times(graph: Graph) -> list[GroupTimes]:
    """By the time that they take, as measured."""
    starts = [graph.measured[nodes.operation_start] for nodes in graph.nodes]
    ends = [graph.measured[nodes.operation_end] for nodes in graph.nodes]
    sorts: dict[tuple[str, str, int], list[Matched]] = defaultdict(list)
    for each in graph.matched:
        name = each.group.description or each.group.name or "all ranks"
        sorts[each.kind, name, len(each.members)].append(each)
    found = [_times(graph, *key, matched, starts, ends) for key, matched in sorts.items()]
    return sorted(found, key=lambda each: -each.transfer_s - each.waiting_s)


def _times(
    graph: Graph, kind: str, name: str, size: int, matched: Sequence[Matched],
    starts: Sequence[Integers], ends: Sequence[Integers],
) -> GroupTimes:  # fmt: skip
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
    members = len(_different(matched))
    return GroupTimes(
        kind, name, size, len({tuple(each.members.tolist()) for each in matched}), round(calls / members),
        transfer / members, waiting / members, moved / moving if moved and moving else None,
        graph.trace.ranks[int(cost.argmax())].rank,
    )  # fmt: skip


def _different(matched: Iterable[Matched]) -> set[int]:
    return {member for each in matched for member in each.members.tolist()}


class Straggler(NamedTuple):
    """How often a rank was the last of its group to come, and how long the others then waited on average."""

    rank: int
    last: int
    waited_for_s: float


def stragglers(graph: Graph, times: Integers) -> list[Straggler]:
    """Ranks that came last to a collective, those that cost most first. Needs several ranks.

    Transfers between two ranks do not count: a stage of a pipeline waits for the one before whoever is slow.

    Args:
        graph: of all ranks.
        times: ``graph.measured`` or ``graph.replayed``.
    """
    starts = [times[nodes.operation_start] for nodes in graph.nodes]
    count, cost = np.zeros(len(starts), dtype=np.int64), np.zeros(len(starts))
    for each in graph.matched:
        if each.between_two:
            continue
        start = each.of(starts)
        last = each.members[start.argmax(axis=0)]
        waited = (start.max(axis=0) - start).sum(axis=0) / (len(each.members) - 1)
        np.add.at(count, last, 1)
        np.add.at(cost, last, waited)
    found = [
        Straggler(rank.rank, int(count[place]), NS * float(cost[place]))
        for place, rank in enumerate(graph.trace.ranks)
        if count[place]
    ]
    return sorted(found, key=lambda straggler: -straggler.waited_for_s)
