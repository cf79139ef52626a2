"""Build the execution graph of a trace."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from asap.core.errors import InsufficientEvidenceError
from asap.traces.collectives import unseen_transfers
from asap.traces.graph.device import device_edges, inferred_edges, operations_before, wait_edges, wait_pairs
from asap.traces.graph.graph import Cause, Edges, Graph, RankNodes
from asap.traces.graph.host import Blocking, blocking_calls, host_edges, without_pollers
from asap.traces.trace import Integers, RankTrace, Trace


def build_graph(trace: Trace, without: Collection[Cause] = ()) -> Graph:
    """The graph of all ranks.

    Args:
        trace: of the run.
        without: causes that are left out, to see what they explain.
    """
    trace = replace(trace, ranks=[without_pollers(rank) for rank in trace.ranks])
    nodes, measured = _number(trace.ranks)
    pairs = list(zip(trace.ranks, nodes, strict=True))
    blocking = [blocking_calls(rank, rank.launches) for rank in trace.ranks]
    parts = [
        part for each, rank in enumerate(trace.ranks) for part in _edges_of(rank, nodes[each], measured, blocking[each])
    ]
    explaining = Edges.join(parts)
    late = delays(measured, explaining.take(~np.isin(explaining.cause, list(without))))
    parts += [inferred_edges(rank, mine, late[mine.operation_start]) for rank, mine in pairs]
    edges = Edges.join(parts)
    if Cause.COLLECTIVE not in without:
        together, met = _joined(nodes, trace, measured)
        alone = (edges.cause == Cause.DURATION) & np.isin(edges.target, together.target)
        edges, measured = Edges.join([edges.take(~alone), together]), np.concatenate([measured, met])
    edges = edges.take(~np.isin(edges.cause, list(without)))
    return _ordered(Graph(trace, measured, edges, nodes, [each.call for each in blocking]))


def _number(ranks: Sequence[RankTrace]) -> tuple[list[RankNodes], Integers]:
    """Nodes in the order operations, calls, steps of each rank; the root comes first."""
    nodes, times, count = [], [np.zeros(1, dtype=np.int64)], 1
    for rank in ranks:
        numbers = []
        steps = np.array([(step.start, step.end) for step in rank.steps], dtype=np.int64).reshape(-1, 2).T
        tables = [(each.start, each.end) for each in (rank.operations, rank.calls)] + [(steps[0], steps[1])]
        for start, end in tables:
            pairs = np.stack([start, end], axis=1)
            number = count + np.arange(pairs.size).reshape(-1, 2)
            times.append(pairs.ravel())
            numbers.append(number)
            count += pairs.size
        (starts, ends), calls, marks = (number.T for number in numbers)
        nodes.append(RankNodes(calls[0], calls[1], starts, ends, starts.copy(), marks[0], marks[1]))
    return nodes, np.concatenate(times)


def _edges_of(rank: RankTrace, nodes: RankNodes, measured: Integers, blocking: Blocking) -> list[Edges]:
    launches, before = rank.launches, operations_before(rank)
    pairs = wait_pairs(rank, launches)
    _order_waits(measured, nodes, pairs)
    parts = host_edges(rank, nodes, blocking)
    parts += device_edges(rank, nodes, launches, before, free=~np.isin(np.arange(len(rank.operations)), pairs[:, 0]))
    return [*parts, wait_edges(nodes, pairs)]


def _order_waits(measured: Integers, nodes: RankNodes, pairs: Integers) -> None:
    """Where rounding lets an operation start before what it waits for has ended, it starts as that ends."""
    waiting, awaited = pairs.T
    start, end = nodes.operation_start[waiting], nodes.operation_end[waiting]
    np.maximum.at(measured, start, np.minimum(measured[nodes.operation_end[awaited]], measured[end]))


def delays(measured: Integers, edges: Edges) -> Integers:
    """How much later each node was than its edges explain, in nanoseconds; zero for nodes without any."""
    explained = np.full(len(measured), np.iinfo(np.int64).min)
    np.maximum.at(explained, edges.target, measured[edges.source] + edges.weight)
    return np.where(explained == np.iinfo(np.int64).min, 0, np.maximum(measured - explained, 0))


def _joined(nodes: Sequence[RankNodes], trace: Trace, measured: Integers) -> tuple[Edges, Integers]:
    """A collective takes one time on all ranks, the shortest that was seen, from when the last of them has come.

    On the rank that came last it did not wait; what others took longer is waiting. All meet in a node of the
    collective, which comes after those in ``measured``: so edges grow with the ranks, not with their square.
    A transfer to or from a rank that is not at hand takes what the shortest of its sort does, after it has waited.
    """
    starts, ends = [mine.operation_start for mine in nodes], [mine.operation_end for mine in nodes]
    parts, met, count = [], [], len(measured)
    for each in trace.matched:
        start, end = each.of(starts), each.of(ends)
        transfer = np.broadcast_to((measured[end] - measured[start]).min(axis=0), start.shape).ravel()
        meeting = np.broadcast_to(count + np.arange(each.collectives), start.shape).ravel()
        parts += [
            Edges.of(start.ravel(), end.ravel(), transfer, Cause.COLLECTIVE),
            Edges.of(start.ravel(), meeting, 0, Cause.COLLECTIVE),
            Edges.of(meeting, end.ravel(), transfer, Cause.COLLECTIVE),
        ]
        met.append(measured[start].max(axis=0))
        for member, row, meet in zip(each.members.tolist(), each.rows, meeting.reshape(start.shape), strict=True):
            nodes[member].operation_met[row] = meet
        count += each.collectives
    for mine, (rows, shortest) in zip(nodes, unseen_transfers(trace.ranks, trace.matched), strict=True):
        start, end, meeting = mine.operation_start[rows], mine.operation_end[rows], count + np.arange(len(rows))
        transfer = np.minimum(shortest, measured[end] - measured[start])
        parts += [
            Edges.of(start, end, transfer, Cause.COLLECTIVE),
            Edges.of(start, meeting, measured[end] - transfer - measured[start], Cause.UNSEEN),
            Edges.of(meeting, end, transfer, Cause.COLLECTIVE),
        ]
        met.append(measured[end] - transfer)
        mine.operation_met[rows] = meeting
        count += len(rows)
    return Edges.join(parts), np.concatenate(met)


def _ordered(graph: Graph) -> Graph:
    """Number the nodes in time and order the edges by target. What would run against time is no cause.

    Of nodes at one moment those come first that others wait for: a collective may move nothing once all have come.
    """
    measured, edges = graph.measured, graph.edges
    order = np.argsort(measured, kind="stable")
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    renumbered = Edges(number[edges.source], number[edges.target], edges.weight, edges.cause)
    nodes = [mine.renumbered(number) for mine in graph.nodes]
    with_time = replace(graph, measured=measured[order], edges=renumbered, nodes=nodes)
    forward = renumbered.source < renumbered.target
    at_once = ~forward & (measured[edges.source] == measured[edges.target])
    if at_once.any():
        try:
            return ordered(with_time, renumbered.take(forward | at_once))[0]
        except InsufficientEvidenceError:
            pass
    return ordered(with_time, renumbered.take(forward))[0]


def ordered(graph: Graph, edges: Edges) -> tuple[Graph, Integers]:
    """The graph with other edges, which may run against measured time; and where each edge was.

    Raises:
        InsufficientEvidenceError: some would have to wait for themselves.
    """
    rank_of = _topological(len(graph.measured), edges)
    renumbered = Edges(rank_of[edges.source], rank_of[edges.target], edges.weight, edges.cause)
    rows = np.argsort(renumbered.target, kind="stable")
    measured = np.empty_like(graph.measured)
    measured[rank_of] = graph.measured
    nodes = [mine.renumbered(rank_of) for mine in graph.nodes]
    return replace(graph, measured=measured, edges=renumbered.take(rows), nodes=nodes), rows


def _topological(nodes: int, edges: Edges) -> Integers:
    """Place of each node in an order in which sources come first.

    Where the numbers are no such order, that of the strong components: Pearce's algorithm (2005) numbers one after all
    that it leads to, and where no node waits for itself each is a component of its own.
    """
    if (edges.source < edges.target).all():
        return np.arange(nodes)
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    waits = csr_array((np.ones(len(edges), dtype=np.int8), (edges.source, edges.target)), shape=(nodes, nodes))
    count, component = connected_components(waits, connection="strong")
    if count < nodes:
        raise InsufficientEvidenceError("with this change ranks would wait for each other in a circle")
    return count - 1 - component.astype(np.int64)
