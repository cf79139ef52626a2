"""What streams wait for on other streams."""

import re

import numpy as np

from asap.traces.graph.device import SMALL_GAP
from asap.traces.graph.graph import Cause, Edges, RankNodes
from asap.traces.graph.host import Launches
from asap.traces.trace import Integers, OperationKind, RankTrace

TOLERANCE = 1_000
"""Nanoseconds by which an operation may seem to start before what it waits for has ended: older traces have
microseconds."""

DRAIN = 0.05
"""Of the time of a kernel that fills the device: within it its last blocks end and others begin. A kernel of n waves
of blocks drains in 1/n of its time; results on A100 are the same from 0.02 to 0.05."""

_WAITING_CALL = re.compile(r"(?:cuda|hip|cu)StreamWaitEvent(?:_\w+)?")


def wait_pairs(rank: RankTrace, launches: Launches) -> Integers:
    """Rows of operations that wait and of those that they wait for, ``[n, 2]``.

    Where the trace does not state them they come from the calls that make a stream wait for an event. Such a call names
    neither stream: the next launch of its thread waits for the last operation on each other stream that had been
    launched before the call and was over when the waiting one began. A collective waits for what computes its operands,
    not for another collective.
    """
    pairs = [rank.waits] if len(rank.waits) else _waits_of_calls(rank, launches)
    return np.unique(np.concatenate([np.empty((0, 2), dtype=np.int64), *pairs]), axis=0)


def wait_edges(nodes: RankNodes, pairs: Integers) -> Edges:
    """The first of each pair starts when the second has ended."""
    waiting, awaited = pairs.T
    return Edges.of(nodes.operation_end[awaited], nodes.operation_start[waiting], 0, Cause.WAIT)


def _waits_of_calls(rank: RankTrace, launches: Launches) -> list[Integers]:
    calls = rank.calls
    is_wait = np.array([bool(_WAITING_CALL.fullmatch(name)) for name in rank.names], dtype=bool)
    waits = np.flatnonzero(is_wait[calls.name])
    if not len(waits):
        return []
    launching, first = np.unique(launches.call[launches.known], return_index=True)
    launched = np.flatnonzero(launches.known)[first]
    pairs = []
    for lane in np.unique(calls.lane[waits]):
        here = calls.lane[launching] == lane
        if not here.any():
            continue
        mine = waits[calls.lane[waits] == lane]
        following = np.searchsorted(launching[here], mine, side="right")
        has_next = following < here.sum()
        waiting = launched[here][following[has_next]]
        pairs += _awaited(rank, launches, waiting, calls.start[mine[has_next]])
    return pairs


def _awaited(rank: RankTrace, launches: Launches, waiting: Integers, since: Integers) -> list[Integers]:
    operations = rank.operations
    communicates = operations.kind == OperationKind.COMMUNICATION
    launch = np.where(launches.known, rank.calls.start[launches.call], np.iinfo(np.int64).min)
    pairs = []
    for stream in np.unique(operations.lane):
        rows = np.flatnonzero(operations.lane == stream)
        launched_before = np.searchsorted(np.maximum.accumulate(launch[rows]), since)
        over = np.searchsorted(operations.end[rows], operations.start[waiting] + TOLERANCE, side="right")
        last = np.minimum(launched_before, over) - 1
        both = communicates[waiting] & communicates[rows[np.maximum(last, 0)]]
        valid = (last >= 0) & (operations.lane[waiting] != stream) & ~both
        pairs.append(np.stack([waiting[valid], rows[last[valid]]], axis=1))
    return pairs


def inferred_edges(rank: RankTrace, nodes: RankNodes, delay: Integers) -> Edges:
    """An operation that starts late for no recorded reason, as one of another stream ends, waits for it.

    It may need what that one computes, or its place on the device: a kernel that fills the device lets another start
    when its last blocks drain, shortly before its end. The edge comes from the start of the other, so that it holds
    for both.

    Args:
        rank: the trace.
        nodes: its nodes.
        delay: of each operation, nanoseconds that no edge explains.
    """
    operations = rank.operations
    duration = operations.end - operations.start
    drained = operations.end - (DRAIN * duration).astype(np.int64)
    pairs = []
    for row in np.flatnonzero(delay > SMALL_GAP).tolist():
        start = int(operations.start[row])
        ready = start - int(delay[row])
        begun = np.searchsorted(operations.start, start)
        others = np.flatnonzero(
            (operations.lane[:begun] != operations.lane[row])
            & (operations.end[:begun] > max(ready, start - SMALL_GAP))
            & (drained[:begun] <= start + TOLERANCE)
        )
        if len(others):
            pairs.append((others[np.argmax(operations.end[others])], row))
    source, target = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    after = operations.start[target] - operations.start[source]
    return Edges.of(nodes.operation_start[source], nodes.operation_start[target], after, Cause.INFERRED)
