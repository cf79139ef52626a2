"""Which rank the others of its groups wait for."""

from typing import NamedTuple

import numpy as np

from asap.traces.graph.graph import Graph
from asap.traces.trace import NS, Integers


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
