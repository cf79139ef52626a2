"""Which rank the others wait for."""

from typing import NamedTuple

import numpy as np

from asap.traces.collectives import match
from asap.traces.graph.graph import Graph
from asap.traces.trace import NS, Integers


class Straggler(NamedTuple):
    """How often a rank was the last to come to a collective, and how long the others then waited on average."""

    rank: int
    last: int
    waited_for_s: float


def stragglers(graph: Graph, times: Integers) -> list[Straggler]:
    """Ranks that came last to a collective, those that cost most first. Needs several ranks.

    Args:
        graph: of all ranks.
        times: ``graph.measured`` or ``graph.replayed``.
    """
    ranks = graph.trace.ranks
    if len(ranks) < 2 or not (matched := match(ranks)):
        return []
    rows = np.array(matched).T
    start = np.stack([times[nodes.operation_start[mine]] for nodes, mine in zip(graph.nodes, rows, strict=True)])
    last = start.argmax(axis=0)
    waited = (start.max(axis=0) - start).sum(axis=0) / (len(ranks) - 1)
    found = [
        Straggler(rank.rank, int((last == i).sum()), NS * float(waited[last == i].sum()))
        for i, rank in enumerate(ranks)
        if (last == i).any()
    ]
    return sorted(found, key=lambda straggler: -straggler.waited_for_s)
