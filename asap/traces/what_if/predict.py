"""The step time of a changed graph, with its interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np

from asap.core.errors import InsufficientEvidenceError
from asap.traces.analysis.critical_path import path_edges
from asap.traces.analysis.iterations import Times
from asap.traces.analysis.quality import require_explained, unexplained, unmatched_share
from asap.traces.analysis.step_time import iterations, step_time
from asap.traces.graph.graph import Graph
from asap.traces.what_if.apply import Changed, apply
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
    of_another_run: bool = False


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


def predict_changed(baseline: Baseline, changed: Changed, added_s: float = 0.0, doubt: float = 0.0) -> WhatIfPrediction:
    """What a step takes in a changed graph. The interval is as wide below as above, as a ratio.

    Args:
        baseline: as it was.
        changed: as it would be.
        added_s: seconds that come on top, or fall away, and are in no graph.
        doubt: relative half-width that they and the changes bring with them.

    Raises:
        InsufficientEvidenceError: nothing of the step is left.
    """
    pairs = zip(baseline.iterations, iterations(changed.graph), strict=True)
    replayed = max(median(_corrected(*pair) for pair in zip(*rank, strict=True)) for rank in pairs)
    value = max(replayed + added_s, 0.0)
    if not value:
        message = (
            "after these changes nothing of the step is left that the trace holds, so nothing bounds it from below"
        )
        raise InsufficientEvidenceError(message, hint="change less, or record the launches of the host too")
    measured = baseline.step.measured_s
    width = baseline.doubt + doubt + (0.0 if _unchanged(baseline.graph, changed.graph) else baseline.unmatched)
    width += UNREALISED * abs(value - measured) / value
    modelled = min(max(added_s, 0.0) / value, 1.0)
    traced = _traced_share(changed) * (1 - modelled)
    return WhatIfPrediction(
        value=value,
        low=value / (1 + width),
        high=value * (1 + width),
        measured=measured,
        replayed=baseline.step.replayed_s,
        traced=traced,
        scaled=1 - modelled - traced,
        modelled=modelled,
    )


def _unchanged(before: Graph, after: Graph) -> bool:
    return np.array_equal(before.edges.weight, after.edges.weight)


def _corrected(before: Times, after: Times) -> float:
    return after.replayed_s * before.measured_s / before.replayed_s if before.replayed_s else after.replayed_s


def _doubt(ranks: Sequence[Sequence[Times]], unexplained_share: float) -> float:
    noise = max(_noise([times.measured_s for times in rank]) for rank in ranks)
    missed = max(median(abs(times.error) for times in rank) for rank in ranks)
    return float(np.hypot(NORMAL_90 * noise, missed)) + unexplained_share


def _noise(times: Sequence[float]) -> float:
    if len(times) < 3:
        return UNSEEN_NOISE
    middle = median(times)
    return MAD_TO_DEVIATION * median(abs(time - middle) for time in times) / middle


def _traced_share(changed: Changed) -> float:
    rows = path_edges(changed.graph)
    weight = changed.graph.edges.weight[rows]
    total = float(weight.sum())
    return float(weight[~changed.scaled[rows]].sum()) / total if total else 1.0
