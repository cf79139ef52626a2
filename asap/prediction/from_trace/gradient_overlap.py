"""How much of the reduction of gradients the backward pass of the last microbatch hides.

Replicas reduce gradients once a step, while the last microbatch goes back (Li et al. 2020, PyTorch Distributed; so does
Megatron-LM with --overlap-grad-reduce). A graph keeps the traced window; with fewer microbatches each is longer.
"""

from dataclasses import dataclass

import numpy as np

from asap.plans import Plan
from asap.prediction.from_trace.factors import Factors
from asap.prediction.from_trace.run import axes_of
from asap.traces.analysis.breakdown import exposed_time, rank_times
from asap.traces.collectives import transfer_times
from asap.traces.graph.graph import Graph
from asap.traces.trace import NS, OperationKind

BACKWARD = 2 / 3
"""Of the work of a microbatch: a product has two in the backward pass."""


@dataclass(frozen=True)
class GradientOverlap:
    """Of a step, on the rank that takes longest: seconds that reducing gradients takes, in how many parts, and seconds
    of the backward pass that hide them."""

    reduction_s: float = 0.0
    window_s: float = 0.0
    parts: float = 1.0

    @classmethod
    def of(cls, graph: Graph, plan: Plan) -> "GradientOverlap":
        """As traced; nothing where no group is known to be of the replicas, or nothing of it was hidden."""
        ranks, found = graph.trace.ranks, cls()
        transfers, times = transfer_times(ranks, graph.matched), rank_times(graph, graph.replayed)
        for rank, transfer, time in zip(ranks, transfers, times, strict=True):
            serves = np.array([*("replica" in axes_of(call.group.ranks, plan) for call in rank.collectives), False])
            mask, steps = serves[rank.operations.collective], max(len(rank.steps), 1)
            reduction = NS * float(transfer[mask].sum()) / steps
            if reduction <= found.reduction_s:
                continue
            exposed = exposed_time(rank, time)
            work = float(exposed[rank.operations.kind != OperationKind.COMMUNICATION].sum()) / steps
            if float(exposed[mask].sum()) / steps < reduction:
                found = cls(reduction, BACKWARD * work / (plan.microbatches or 1), float(mask.sum()) / steps)
        return found

    def added(self, found: Factors) -> float:
        """Seconds that a graph with the traced window, scaled, is short of; negative: it shows too much."""
        taken, window = self.reduction_s * found.of_axes(["replica"]), self.window_s * found.compute
        shown = _exposed(taken, window, self.parts)
        return _exposed(taken, window / found.microbatches, max(self.parts * found.layers, 1.0)) - shown


def _exposed(taken: float, window: float, parts: float) -> float:
    """The first part is there when the first layers have gone back; the last comes when all have, and nothing hides it.

    There is a part for each layer or so.
    """
    return max(taken - window * (parts - 1) / parts, taken / parts)
