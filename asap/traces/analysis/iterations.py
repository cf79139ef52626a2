"""Times of steps on the host and of iterations on the device, measured and replayed."""

from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np

from asap.traces.graph.graph import Graph, RankNodes
from asap.traces.trace import NS, Integers, RankTrace

NO_STEP = -1


class Times(NamedTuple):
    """One duration in seconds, as recorded and as the graph has it."""

    measured_s: float
    replayed_s: float

    @property
    def error(self) -> float:
        """Relative error of the replay."""
        return self.replayed_s / self.measured_s - 1 if self.measured_s else 0.0


def step_times(graph: Graph, nodes: RankNodes) -> list[Times]:
    """Marked steps, on the thread that marked them."""
    lengths = (NS * (times[nodes.step_end] - times[nodes.step_start]) for times in (graph.measured, graph.replayed))
    return [Times(*pair) for pair in np.stack([*lengths], axis=1).tolist()]


def single_step(graph: Graph, rank: RankTrace, nodes: RankNodes) -> Times:
    """The one marked step, until its end and the last operation that it launched."""
    ends = np.append(nodes.operation_end[step_of_operations(rank) == 0], nodes.step_end[0])
    begin = int(nodes.step_start[0])
    return Times(*(NS * float(times[ends].max() - times[begin]) for times in (graph.measured, graph.replayed)))


def device_iterations(graph: Graph, rank: RankTrace, nodes: RankNodes) -> list[Times]:
    """Iterations as the device sees them.

    From the last operation of a step to that of the next: a device that runs behind its host takes longer than the
    host's step. Executions of a module, and a single step, last from their first operation to their last.
    """
    step = step_of_operations(rank)
    both, spans, lasts = (graph.measured, graph.replayed), [], {}
    for number in range(max(len(rank.steps), 1)):
        rows = np.flatnonzero(step == number)
        if len(rows):
            start, end = nodes.operation_start[rows], nodes.operation_end[rows]
            spans.append(Times(*(NS * float(times[end].max() - times[start].min()) for times in both)))
            lasts[number] = [int(times[end].max()) for times in both]
    if rank.executions:
        return spans
    following = [(one, other) for one, other in pairwise(lasts) if rank.steps[other].follows(rank.steps[one])]
    times = [(lasts[one], lasts[other]) for one, other in following]
    return [Times(NS * (b[0] - a[0]), NS * (b[1] - a[1])) for a, b in times] or spans


def step_of_operations(rank: RankTrace) -> Integers:
    """Number of the step that launched each operation, or in which it ran if the trace has no launches at all.

    Without marked steps all operations are of step 0.
    """
    operations = rank.operations
    if not rank.steps:
        return np.zeros(len(operations), dtype=np.int64)
    launches = rank.launches
    if launches.known.any():
        moment = np.where(launches.known, rank.calls.start[launches.call], np.iinfo(np.int64).min)
    else:
        moment = operations.start
    starts = np.array([step.start for step in rank.steps])
    ends = np.array([step.end for step in rank.steps])
    step = np.searchsorted(starts, moment, side="right") - 1
    return np.where((step >= 0) & (moment <= ends[np.maximum(step, 0)]), step, NO_STEP)


def iterations(graph: Graph) -> list[list[Times]]:
    """For each rank the times that stand for its step.

    Iterations of the device where there are several, for a device may run behind its host; a single marked step from
    its start until both its end and the last operation that it launched, and steps in which the device did nothing.
    """
    found = []
    for rank, nodes in zip(graph.trace.ranks, graph.nodes, strict=True):
        several = rank.executions or len(rank.steps) > 1
        iterations_of_device = device_iterations(graph, rank, nodes) if several or not rank.steps else []
        single = [single_step(graph, rank, nodes)] if len(rank.steps) == 1 else []
        found.append(iterations_of_device or single or step_times(graph, nodes))
    return found


def step_time(graph: Graph) -> Times:
    """Median over iterations, of the slowest rank: the first iteration of a job may hold its start-up."""
    typical = [
        Times(median(times.measured_s for times in rank), median(times.replayed_s for times in rank))
        for rank in iterations(graph)
    ]
    return Times(max(times.measured_s for times in typical), max(times.replayed_s for times in typical))
