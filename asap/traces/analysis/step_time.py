"""The step time of a run, from all its ranks."""

from statistics import median

from asap.traces.analysis.iterations import Times, device_iterations, single_step, step_times
from asap.traces.graph.graph import Graph


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
