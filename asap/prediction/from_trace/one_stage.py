"""A pipeline by one of its stages: what it waits for holds the time of the others.

A step is a pass for each microbatch on the slowest stage, and passes of the others that fill and drain the pipeline
(Narayanan et al. 2021, arXiv:2104.04473). All stages have the same layers, the last one logits too. So what the last
one waits is passes of the others; what another one waits beyond them is what the last one works longer.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from asap.plans import Plan
from asap.prediction.from_trace.factors import COMPUTE, UPDATE, Factors, Modelled, class_labels, modelled
from asap.prediction.from_trace.run import Run
from asap.traces.analysis.iterations import step_of_operations, step_time
from asap.traces.collectives import match
from asap.traces.graph.build import build_graph
from asap.traces.graph.graph import Cause, Graph
from asap.traces.trace import Integers, OperationKind, RankTrace
from asap.traces.what_if.apply import NONE, Changed, edges_of, scaled_edges
from asap.traces.what_if.predict import Added


def longest_stage(graph: Graph, plan: Plan) -> Graph:
    """Of the ranks of one stage, which works longest of those at hand and decides the step; its waits say the rest."""
    ranks = graph.trace.ranks
    places = [_place(rank, plan) for rank in ranks]
    if len({*places}) < 2:
        return graph
    longest = places[int(np.argmax([_work(rank) for rank in ranks]))]
    kept = [rank for rank, place in zip(ranks, places, strict=True) if place == longest]
    return build_graph(replace(graph.trace, ranks=kept, matched=match(kept)))


def _work(rank: RankTrace) -> float:
    time = rank.operations.end - rank.operations.start
    return float(time[rank.operations.kind != OperationKind.COMMUNICATION].sum()) / max(len(rank.steps), 1)


def _place(rank: RankTrace, plan: Plan) -> tuple[int, int]:
    """Which it is of the ranks that it sends to and receives from along the pipeline, and how many these are."""
    peers, apart = {rank.rank}, max(plan.devices // plan.degree("stage"), 1)
    for named in ({*call.group.ranks, *call.pair} for call in rank.collectives if call.pair):
        peers |= named if all((each - rank.rank) % apart == 0 for each in named) else set()
    return sorted(peers).index(rank.rank), len(peers)


@dataclass(frozen=True)
class OneStage:
    """What the traced stage says of the pipeline; seconds of a step without what it waits for others, and those."""

    traced: Run
    is_first: bool
    has_head: bool
    own_s: float
    waited_s: float

    @classmethod
    def of(cls, graph: Graph, traced: Run) -> "OneStage":
        """Of ranks of one stage."""
        own_s = step_time(graph.with_waits(0.0)).replayed_s
        number, count = _place(graph.trace.ranks[0], traced.plan)
        waited_s = step_time(graph).replayed_s - own_s if traced.pipeline.stages > 1 else 0.0
        return cls(traced, number == 0, number == count - 1, own_s, waited_s)

    def modelled(self, run: Run, names: Collection[str]) -> Modelled:
        """Such a stage of a run by the step model; the only stage of one without a pipeline has all."""
        head = self.has_head or run.pipeline.stages == 1
        whole, bare = modelled(run, True, names), modelled(run, False, names)
        ends = replace(bare, update=whole.update, axes=whole.axes, exposed=whole.exposed)
        return whole if head else ends if self.is_first else bare

    def placed(self, scaled: Changed, found: Factors, passes: tuple[float, float]) -> tuple[Changed, Added]:
        """The scaled graph with what the stage waits for in the target, and what is added; ``passes`` are seconds over
        the layers of a stage, in the traced run and in the target."""
        before, after, waited_s = found.before, found.after, self.waited_s
        own_s = step_time(scaled.graph.with_waits(0.0)).replayed_s
        (head, ends), (head_then, ends_then) = (self._last_stage(run) for run in (self.traced, found.target))
        fill = passes[0]
        if waited_s:
            fill = waited_s / before.idle if self.has_head else min(waited_s / before.idle, passes[0])
        longer = max(waited_s - before.idle * fill - ends, 0.0) / before.microbatches
        waits = after.idle * fill * passes[1] / (passes[0] or 1.0)
        if after.idle and head:
            waits += after.microbatches * longer * head_then / head + ends_then
        target = scaled.graph.with_waits(waits / waited_s if waited_s else own_s / self.own_s)
        if waited_s:
            bubble = own_s + waits - step_time(target).replayed_s
        else:
            bubble = waits - before.idle * fill * found.kernels(COMPUTE)
        return Changed(target, scaled.scaled | target.unseen), Added(bubble_s=bubble)

    def _last_stage(self, run: Run) -> tuple[float, float]:
        """Seconds by the step model that the last stage works longer than this one: in a pass, and once in a step."""
        whole, bare = (modelled(run, head, (UPDATE,)) for head in (True, False))
        each = (whole.products + whole.memory - bare.products - bare.memory) / whole.microbatches
        once = whole.update - bare.update + whole.exposed["replica"] - bare.exposed["replica"]
        return each, 0.0 if self.has_head or self.is_first else once


_REDUCTIONS = [
    f"{kind} {axes}" for kind in ("all-reduce", "reduce-scatter") for axes in ("data", "replica", "data replica")
]


def last_pass(graph: Graph, plan: Plan) -> Integers:
    """For each edge 1 if it holds what runs while gradients of a step are reduced, 0 for what else runs, -1 for the
    reductions. The backward pass of the last microbatch alone hides them where they accumulate."""
    numbers = []
    for rank in graph.trace.ranks:
        reduces = np.isin(class_labels(rank, plan), _REDUCTIONS)
        step, start = step_of_operations(rank), rank.operations.start
        number = np.zeros(len(start), dtype=np.int64)
        for each in np.unique(step[reduces]).tolist():
            mine = start[reduces & (step == each)]
            number[(step == each) & (start >= mine.min()) & (start <= mine.max())] = 1
        numbers.append(np.where(reduces, NONE, number))
    return edges_of(graph, numbers)


def last_pass_scaled(changed: Changed, last: Integers, before: int, after: int) -> Changed:
    """The graph in which the last pass has its share among ``after`` microbatches instead of ``before``, and all work
    takes as long in sum; unchanged where reductions take longer than one microbatch, for then each one has its own."""
    own, weight = changed.graph.edges.cause == Cause.DURATION, changed.graph.edges.weight
    other, inside = (float(weight[own & (last == each)].sum()) for each in (0, 1))
    whole = other + inside
    if not other or not inside or before * inside > whole:
        return changed
    then = min(inside * before / after, whole)
    return scaled_edges(changed, last, [(whole - then) / other, then / inside])
