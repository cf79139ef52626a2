"""Operations of a trace that a change names."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asap.core.errors import InsufficientEvidenceError
from asap.core.text import plain
from asap.profiles.kernel_names import compute_class
from asap.traces.graph.graph import Cause, Graph, RankNodes
from asap.traces.trace import Integers, OperationKind, RankTrace, collective_kind, is_loading
from asap.traces.what_if.change import BY_NAME, CLASSES, COLLECTIVES


def selected_operations(graph: Graph, what: str) -> list[NDArray[np.bool_]]:
    """For each rank, which of its operations are meant.

    Raises:
        InsufficientEvidenceError: the trace holds none.
    """
    masks = [_mask(rank, what) for rank in graph.trace.ranks]
    if not any(mask.any() for mask in masks):
        message = f"the trace holds no operation of {plain(what, 60)}"
        raise InsufficientEvidenceError(message, hint="asap trace replay shows what it holds")
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
            mine = (edges.cause == Cause.HOST) & np.isin(edges.target, _nodes_of_thread(rank, nodes, int(lane)))
            found[mine] += _overlap(
                graph.measured[edges.source[mine]], graph.measured[edges.target[mine]], here.start, here.end
            )
    if not known:
        hint = "PyTorch names them enumerate(DataLoader)"
        raise InsufficientEvidenceError("the trace does not say when the data loader worked", hint=hint)
    return np.minimum(found, edges.weight)


def _nodes_of_thread(rank: RankTrace, nodes: RankNodes, lane: int) -> Integers:
    calls = rank.caller[rank.calls.lane] == lane
    parts: Sequence[Integers] = (nodes.call_start[calls], nodes.call_end[calls], nodes.step_start, nodes.step_end)
    return np.concatenate(parts)


def _overlap(start: Integers, end: Integers, from_: Integers, to: Integers) -> Integers:
    """Of each interval, how much lies within the others, which do not overlap each other."""
    total = np.concatenate([[0], np.cumsum(to - from_)])

    def covered(moment: Integers) -> Integers:
        begun = np.searchsorted(from_, moment, side="right")
        running = np.maximum(begun - 1, 0)
        partial = np.clip(moment - from_[running], 0, to[running] - from_[running])
        return np.where(begun > 0, total[running] + partial, 0)

    return covered(end) - covered(start)


def _mask(rank: RankTrace, what: str) -> NDArray[np.bool_]:
    kinds = {kind.name.lower(): kind for kind in OperationKind}
    if what in kinds:
        return rank.operations.kind == kinds[what]
    if what in COLLECTIVES:
        named = [collective_kind(name) == what for name in rank.names]
    elif what in CLASSES:
        named = [collective_kind(name) is None and compute_class(name) == what for name in rank.names]
    else:
        named = [what.removeprefix(BY_NAME).lower() in name.lower() for name in rank.names]
    return np.array(named, dtype=bool)[rank.operations.name]
