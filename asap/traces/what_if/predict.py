"""The step time of a changed graph, with its interval."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asap.core.errors import InsufficientEvidenceError
from asap.traces.analysis.critical_path import path_edges
from asap.traces.analysis.iterations import Times, iterations, step_time
from asap.traces.analysis.quality import require_explained, unexplained, unmatched_share
from asap.traces.analysis.report import SlowRankReport
from asap.traces.graph.graph import Graph
from asap.traces.trace import OperationKind, RankTrace
from asap.traces.what_if.apply import Changed, apply, scaled_operations
from asap.traces.what_if.change import Change

NORMAL_90 = 1.645
"""Half-width of the central 90 % of a normal distribution, in standard deviations."""

MAD_TO_DEVIATION = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""

UNSEEN_NOISE = 0.03
"""Coefficient of variation of step times where fewer than three were recorded: the largest of undisturbed steps in
public traces (0.3 to 3 %)."""

UNREALISED = 0.25
"""Of what a change saves or costs in the graph, how much may not come true. One public pair of runs differs in one
thing alone (ResNet-50 on a V100 with 0 and with 4 loader workers): there a fifth of the saving did not."""


class Added(NamedTuple):
    """Seconds of a step that come on top of those of a graph, or fall away."""

    communication_s: float = 0.0
    bubble_s: float = 0.0


NOTHING = Added()


class WhatIfPrediction(NamedTuple):
    """Seconds of a step, and of it which share is as traced, which was scaled, and which is of a model alone."""

    value: float
    low: float
    high: float
    measured: float
    replayed: float
    traced: float
    scaled: float
    modelled: float = 0.0
    note: str | None = None
    graph: Graph | None = None
    """As it is after the changes."""
    added: Added = NOTHING


@dataclass(frozen=True, eq=False)
class Baseline:
    """What an unchanged graph says, once for all changes of it."""

    graph: Graph
    iterations: Sequence[Sequence[Times]]
    step: Times
    doubt: float
    """Relative half-width that the noise of steps, the error of the replay and what is not explained give together."""
    unmatched: float
    """Share of the time in collectives of which nothing says how much is waiting: any change may change all of it."""

    @classmethod
    def of(cls, graph: Graph) -> "Baseline":
        """Raises InsufficientEvidenceError: the trace does not explain enough."""
        require_explained(graph)
        before = iterations(graph)
        return cls(graph, before, step_time(graph), _doubt(before, max(unexplained(graph))), unmatched_share(graph))


def predict_change(graph: Graph, changes: Sequence[Change]) -> WhatIfPrediction:
    """What a step takes after all changes.

    Each iteration is corrected by how its unchanged replay missed the measurement. The interval adds up the noise of
    measured iterations, the error of the replay, the unexplained share and what of the change may not come true.

    Raises:
        InsufficientEvidenceError: the trace does not hold what a change concerns, or does not explain enough.
    """
    return predict_changed(Baseline.of(graph), apply(graph, changes))


def predict_changed(
    baseline: Baseline, changed: Changed, added: Added = NOTHING, doubt: float = 0.0
) -> WhatIfPrediction:
    """What a step takes in a changed graph. The interval is as wide below as above, as a ratio.

    Args:
        baseline: as it was.
        changed: as it would be.
        added: what is in no graph.
        doubt: relative half-width that they and the changes bring with them.

    Raises:
        InsufficientEvidenceError: nothing of the step is left.
    """
    pairs = zip(baseline.iterations, iterations(changed.graph), strict=True)
    replayed = max(
        median(then.replayed_s * (now.measured_s / now.replayed_s if now.replayed_s else 1.0) for now, then in rank)
        for rank in (zip(*each, strict=True) for each in pairs)
    )
    value = max(replayed + sum(added), 0.0)
    if not value:
        message = (
            "after these changes nothing of the step is left that the trace holds, so nothing bounds it from below"
        )
        raise InsufficientEvidenceError(message, hint="change less, or record the launches of the host too")
    measured = baseline.step.measured_s
    unchanged = np.array_equal(baseline.graph.edges.weight, changed.graph.edges.weight)
    width = baseline.doubt + doubt + (0.0 if unchanged else baseline.unmatched)
    width += UNREALISED * abs(value - measured) / value
    modelled = min(max(sum(added), 0.0) / value, 1.0)
    rows = path_edges(changed.graph)
    weight = changed.graph.edges.weight[rows]
    traced = (1 - modelled) * (float(weight[~changed.scaled[rows]].sum() / weight.sum()) if weight.any() else 1.0)
    return WhatIfPrediction(
        value=value, low=value / (1 + width), high=value * (1 + width), measured=measured,
        replayed=baseline.step.replayed_s, traced=traced, scaled=1 - modelled - traced, modelled=modelled,
        graph=changed.graph, added=added,
    )  # fmt: skip


def _doubt(ranks: Sequence[Sequence[Times]], unexplained_share: float) -> float:
    noise = max(_noise([times.measured_s for times in rank]) for rank in ranks)
    missed = max(median(abs(times.error) for times in rank) for rank in ranks)
    return float(np.hypot(NORMAL_90 * noise, missed)) + unexplained_share


def _noise(times: Sequence[float]) -> float:
    if len(times) < 3:
        return UNSEEN_NOISE
    middle = median(times)
    return MAD_TO_DEVIATION * median(abs(time - middle) for time in times) / middle


SLOWER = 0.02
"""Of a rank's own work. Undisturbed steps in public traces vary by 0.3 to 3 %, their sums over a trace by less."""

WORTH_NAMING = 0.005
"""Of the step: what a slow rank costs at least."""

TELLING = 0.01
"""Of a rank's own work: an operation that takes less does not tell how fast the rank is."""

REPLAYED = 8
"""So many ranks, those with most time over their peers', are replayed without it."""


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


def slow_ranks(graph: Graph) -> list[SlowRankReport]:
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
        SlowRankReport(
            rank=graph.trace.ranks[place].rank,
            slower=excess[place],
            step_time_s=_without(graph, place, usual[place] / own[place]),
        )
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
