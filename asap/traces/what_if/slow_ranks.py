"""Ranks whose own work takes longer than that of ranks that do the same, and what the step would take if it did not."""

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asap.traces.analysis.step_time import step_time
from asap.traces.graph.graph import Graph
from asap.traces.trace import OperationKind, RankTrace
from asap.traces.what_if.apply import Changed, scaled_operations

SLOWER = 0.02
"""Of a rank's own work. Undisturbed steps in public traces vary by 0.3 to 3 %, their sums over a trace by less."""

WORTH_NAMING = 0.005
"""Of the step: what a slow rank costs at least."""

TELLING = 0.01
"""Of a rank's own work: an operation that takes less does not tell how fast the rank is."""

REPLAYED = 8
"""So many ranks, those with most time over their peers', are replayed without it."""


class SlowRank(NamedTuple):
    """A rank with what its own work takes over its peers', as a share, and the step time without that."""

    rank: int
    slower: float
    step_time_s: float


@dataclass(frozen=True)
class _Work:
    """Nanoseconds that each name of operation takes on a rank, how many there are, and how long one typically takes."""

    total: dict[str, float]
    count: dict[str, int]
    typical: dict[str, float]

    @property
    def role(self) -> frozenset[tuple[str, int]]:
        """Ranks that run the same operations equally often do the same: a stage of a pipeline, or all of it."""
        return frozenset(self.count.items())


def slow_ranks(graph: Graph) -> list[SlowRank]:
    """Those that cost the step most first. The work of a rank is everything but communication.

    It is compared with the lower median of the ranks that run the same operations; where no other does, as in a
    pipeline without data parallelism, each operation is compared with those of its name on other ranks, and the rank is
    as slow as the least slow of them: a stage may have more to do, a slow rank takes longer for everything.
    """
    work = [_work(rank) for rank in graph.trace.ranks]
    roles: dict[frozenset[tuple[str, int]], list[_Work]] = defaultdict(list)
    for each in work:
        roles[each.role].append(each)
    usual = [_usual(each, roles[each.role], work) for each in work]
    own = [sum(each.total.values()) for each in work]
    excess = [mine / other - 1 if other else 0.0 for mine, other in zip(own, usual, strict=True)]
    order = sorted(range(len(work)), key=lambda place: usual[place] - own[place])
    found = [
        SlowRank(graph.trace.ranks[place].rank, excess[place], _without(graph, place, usual[place] / own[place]))
        for place in order[:REPLAYED]
        if excess[place] > SLOWER
    ]
    now = step_time(graph).replayed_s
    costly = [each for each in found if each.step_time_s < (1 - WORTH_NAMING) * now]
    return sorted(costly, key=lambda each: each.step_time_s)


def _without(graph: Graph, place: int, factor: float) -> float:
    """The step if the own work of one rank took ``factor`` of its time."""
    masks = [
        _own(rank) if number == place else np.zeros(len(rank.operations), dtype=bool)
        for number, rank in enumerate(graph.trace.ranks)
    ]
    changed = scaled_operations(Changed(graph, np.zeros(len(graph.edges), dtype=bool)), masks, factor)
    return step_time(changed.graph).replayed_s


def _own(rank: RankTrace) -> NDArray[np.bool_]:
    return rank.operations.kind != OperationKind.COMMUNICATION


def _work(rank: RankTrace) -> _Work:
    rows = np.flatnonzero(_own(rank))
    name, duration = rank.operations.name[rows], (rank.operations.end - rank.operations.start)[rows]
    order = np.argsort(name, kind="stable")
    numbers, starts = np.unique(name[order], return_index=True)
    parts = dict(zip((str(rank.names[each]) for each in numbers), np.split(duration[order], starts[1:]), strict=True))
    return _Work(
        {key: float(part.sum()) for key, part in parts.items()},
        {key: len(part) for key, part in parts.items()},
        {key: float(np.median(part)) for key, part in parts.items()},
    )


def _usual(work: _Work, peers: list[_Work], every: list[_Work]) -> float:
    """Nanoseconds that the same work takes elsewhere."""
    if len(peers) > 1:
        return _lower_median([sum(each.total.values()) for each in peers])
    total = sum(work.total.values())
    ratios = [
        _lower_median([each.typical[name] for each in every if name in each.typical]) / work.typical[name]
        for name, taken in work.total.items()
        if taken > TELLING * total and work.typical[name]
    ]
    return total * max(ratios, default=1.0)


def _lower_median(values: list[float]) -> float:
    return sorted(values)[(len(values) - 1) // 2]
