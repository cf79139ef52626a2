"""Change a graph."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asap.core.errors import InsufficientEvidenceError
from asap.core.text import plain
from asap.profiles.collectives import compute_class
from asap.profiles.xplane.columns import uncovered
from asap.traces.analysis.iterations import step_of_operations, step_time
from asap.traces.graph.build import ordered
from asap.traces.graph.device import operations_before
from asap.traces.graph.graph import Cause, Edges, Graph
from asap.traces.trace import Integers, OperationKind, RankTrace, collective_kind, is_loading
from asap.traces.what_if.change import BY_NAME, CLASSES, DATALOADER, HOST, Action, Change, collectives


def selected_operations(graph: Graph, what: str) -> list[NDArray[np.bool_]]:
    """For each rank, which of its operations are meant.

    Raises:
        InsufficientEvidenceError: the trace holds none.
    """
    masks = [_mask(rank, what) for rank in graph.trace.ranks]
    if not any(mask.any() for mask in masks):
        message = f"the trace holds no operation of {plain(what, 60)}"
        raise InsufficientEvidenceError(message, hint="`asap trace replay` shows what it holds")
    return masks


def dataloader_time(graph: Graph) -> Integers:
    """For each edge, how many of its nanoseconds the host spent waiting for the next batch.

    Raises:
        InsufficientEvidenceError: the trace does not say when that was.
    """
    edges = graph.edges
    found = np.zeros(len(edges), dtype=np.int64)
    known = False
    for rank, nodes in zip(graph.trace.ranks, graph.nodes, strict=True):
        loads = np.array([is_loading(name) for name in rank.names], dtype=bool)
        spans = rank.spans.take(loads[rank.spans.name])
        known |= len(spans) > 0
        for lane in np.unique(rank.caller[spans.lane]):
            here = spans.take(rank.caller[spans.lane] == lane)
            calls = rank.caller[rank.calls.lane] == lane
            thread = nodes.call_start[calls], nodes.call_end[calls], nodes.step_start, nodes.step_end
            mine = (edges.cause == Cause.HOST) & np.isin(edges.target, np.concatenate(thread))
            start, end = graph.measured[edges.source[mine]], graph.measured[edges.target[mine]]
            found[mine] += end - start - uncovered(start, end, here.start, here.end)
    if not known:
        hint = "PyTorch names them enumerate(DataLoader)"
        raise InsufficientEvidenceError("the trace does not say when the data loader worked", hint=hint)
    return np.minimum(found, edges.weight)


def _mask(rank: RankTrace, what: str) -> NDArray[np.bool_]:
    kinds = {kind.name.lower(): kind for kind in OperationKind}
    if what in kinds:
        return rank.operations.kind == kinds[what]
    if what in collectives():
        named = [collective_kind(name) == what for name in rank.names]
    elif what in CLASSES:
        named = [collective_kind(name) is None and compute_class(name) == what for name in rank.names]
    else:
        named = [what.removeprefix(BY_NAME).lower() in name.lower() for name in rank.names]
    return np.array(named, dtype=bool)[rank.operations.name]


Masks = Sequence[NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class Changed:
    """A graph, and which of its edges do not have their traced weight."""

    graph: Graph
    scaled: NDArray[np.bool_]


def apply(graph: Graph, changes: Sequence[Change]) -> Changed:
    """Make all changes, one after the other. Stages that are not at hand do as the one that is: they are waited for in
    proportion to its own work.

    Raises:
        InsufficientEvidenceError: the trace does not hold what a change concerns.
    """
    changed = Changed(graph, np.zeros(len(graph.edges), dtype=bool))
    for change in changes:
        changed = _applied(changed, change)
    if not changes or not graph.unseen.any():
        return changed
    own, then = (step_time(each.with_waits(0.0)).replayed_s for each in (graph, changed.graph))
    return replace(changed, graph=changed.graph.with_waits(then / own)) if own else changed


def _applied(changed: Changed, change: Change) -> Changed:
    graph = changed.graph
    if change.what == HOST:
        return scaled_edges(changed, np.where(graph.edges.cause == Cause.HOST, 0, NONE), [change.factor])
    if change.what == DATALOADER:
        loading = dataloader_time(graph)
        weight = graph.edges.weight - ((1 - change.factor) * loading).astype(np.int64)
        return Changed(graph.with_weights(weight), changed.scaled | (loading > 0))
    masks = selected_operations(graph, change.what)
    if change.action is Action.OVERLAP:
        return _overlapped(changed, masks)
    if change.action is Action.EVEN:
        return evened_operations(changed, masks)
    scaled = scaled_operations(changed, masks, change.factor)
    return _freed(scaled, masks) if change.action is Action.REMOVE else scaled


NONE = -1


def edges_of(graph: Graph, numbers: Sequence[Integers]) -> Integers:
    """For each edge the number of the operation whose time it holds, from those of each rank; -1 where it is none."""
    started, ended = (np.full(len(graph.measured), NONE) for _ in range(2))
    for mine, nodes in zip(numbers, graph.nodes, strict=True):
        started[nodes.operation_start] = ended[nodes.operation_end] = mine
    edges = graph.edges
    own = np.isin(edges.cause, (Cause.DURATION, Cause.COLLECTIVE))
    from_start = np.isin(edges.cause, (Cause.INFERRED, Cause.STREAM, Cause.BLOCKED))
    return np.where(own, ended[edges.target], np.where(from_start, started[edges.source], NONE))


def scaled_edges(changed: Changed, number: Integers, factor: Sequence[float]) -> Changed:
    """Each edge takes its time times the factor of its number; -1 has none."""
    graph = changed.graph
    weight = np.rint(graph.edges.weight * np.array([*factor, 1.0])[number]).astype(np.int64)
    return Changed(graph.with_weights(weight), changed.scaled | (number != NONE))


def scaled_operations(changed: Changed, masks: Masks, factor: float) -> Changed:
    """These operations of each rank take ``factor`` times as long."""
    return scaled_edges(changed, edges_of(changed.graph, [np.where(mask, 0, NONE) for mask in masks]), [factor])


def evened_operations(changed: Changed, masks: Masks) -> Changed:
    """Each of these operations takes what those of its name take over all ranks and steps: work the mean, and
    communication the median, which one late transfer does not move (Lin et al. 2025)."""
    graph, edges = changed.graph, changed.graph.edges
    numbers = {name: number for number, name in enumerate({name for rank in graph.trace.ranks for name in rank.names})}
    sort = np.full(len(graph.measured), -1)
    for rank, nodes, mask in zip(graph.trace.ranks, graph.nodes, masks, strict=True):
        named = np.array([numbers[name] for name in rank.names], dtype=np.int64)
        kind = rank.operations.kind == OperationKind.COMMUNICATION
        sort[nodes.operation_end[mask]] = (2 * named[rank.operations.name] + kind)[mask]
    rows = np.flatnonzero(np.isin(edges.cause, (Cause.DURATION, Cause.COLLECTIVE)) & (sort[edges.target] >= 0))
    weight = edges.weight.copy()
    for each in np.unique(sort[edges.target[rows]]).tolist():
        mine = rows[sort[edges.target[rows]] == each]
        weight[mine] = np.rint(np.median(weight[mine]) if each % 2 else np.mean(weight[mine]))
    scaled = changed.scaled.copy()
    scaled[rows] = True
    return Changed(graph.with_weights(weight), scaled)


def _freed(changed: Changed, masks: Masks) -> Changed:
    """Nobody waits for another rank in what is removed, and its launch takes no time."""
    graph, edges = changed.graph, changed.graph.edges
    start, end = _ends(graph, masks)
    begin_of = np.full(len(graph.measured), -1)
    begin_of[end] = start
    own_start = begin_of[edges.target]
    across = (edges.cause == Cause.COLLECTIVE) & (own_start >= 0) & (own_start != edges.source)
    launches = (edges.cause == Cause.HOST) & np.isin(edges.target, _launching(graph, masks))
    weight = np.where(launches, 0, edges.weight)
    edges = replace(edges, weight=weight).take(~across)
    return Changed(graph.with_edges(edges), (changed.scaled | launches)[~across])


def _launching(graph: Graph, masks: Masks) -> Integers:
    """Ends of the calls that launch nothing but these operations."""
    found = []
    for rank, nodes, mask in zip(graph.trace.ranks, graph.nodes, masks, strict=True):
        call = rank.launches.call
        found.append(nodes.call_end[np.setdiff1d(call[mask & (call >= 0)], call[~mask])])
    return np.concatenate(found)


def _ends(graph: Graph, masks: Masks) -> tuple[Integers, Integers]:
    pairs = list(zip(graph.nodes, masks, strict=True))
    start = np.concatenate([nodes.operation_start[mask] for nodes, mask in pairs])
    return start, np.concatenate([nodes.operation_end[mask] for nodes, mask in pairs])


def _overlapped(changed: Changed, masks: Masks) -> Changed:
    """Other work waits for the last of these operations in each step alone, across streams and on their own stream."""
    masks = [_but_the_last(rank, mask) for rank, mask in zip(changed.graph.trace.ranks, masks, strict=True)]
    graph, edges = changed.graph, changed.graph.edges
    start, end = _ends(graph, masks)
    others = np.concatenate(
        [
            nodes.operation_start[rank.operations.kind != OperationKind.COMMUNICATION]
            for rank, nodes in zip(graph.trace.ranks, graph.nodes, strict=True)
        ]
    )
    crossing = np.isin(edges.cause, (Cause.WAIT, Cause.INFERRED, Cause.STREAM)) & np.isin(edges.target, others)
    dropped = crossing & (np.isin(edges.source, end) | np.isin(edges.source, start))
    around = _around(graph, masks)
    joined = Edges.join([edges.take(~dropped), around])
    scaled = np.concatenate([changed.scaled[~dropped], np.zeros(len(around), dtype=bool)])
    graph, rows = ordered(graph, joined)
    return Changed(graph, scaled[rows])


def _but_the_last(rank: RankTrace, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    step = step_of_operations(rank)
    rows = np.flatnonzero(mask)
    _, first_from_the_end = np.unique(step[rows][::-1], return_index=True)
    kept = mask.copy()
    kept[rows[::-1][first_from_the_end]] = False
    return kept


def _around(graph: Graph, masks: Masks) -> Edges:
    """The order of each stream without these operations."""
    source, target = [], []
    for rank, nodes, mask in zip(graph.trace.ranks, graph.nodes, masks, strict=True):
        kept = np.flatnonzero(~mask)
        before = operations_before(replace(rank, operations=rank.operations.take(kept)))
        later = np.flatnonzero(before >= 0)
        source.append(nodes.operation_end[kept[before[later]]])
        target.append(nodes.operation_start[kept[later]])
    return Edges.of(np.concatenate(source), np.concatenate(target), 0, Cause.STREAM)
