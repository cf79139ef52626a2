"""The backward pass of the last microbatch, which alone hides the reduction of gradients that accumulate.

A graph keeps the microbatches that were traced. Under a plan with fewer of them the last one is a larger share of the
work, and hides more.
"""

import numpy as np

from asap.plans import Plan
from asap.prediction.from_trace.factors import class_labels
from asap.traces.analysis.iterations import step_of_operations
from asap.traces.graph.graph import Cause, Graph
from asap.traces.trace import Integers
from asap.traces.what_if.apply import NONE, Changed, edges_of, scaled_edges

_REDUCTIONS = [
    f"{kind} {axes}" for kind in ("all-reduce", "reduce-scatter") for axes in ("data", "replica", "data replica")
]


def last_pass(graph: Graph, plan: Plan) -> Integers:
    """For each edge 1 if it holds what runs while gradients of a step are reduced, 0 for what else runs, -1 for the
    reductions."""
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
