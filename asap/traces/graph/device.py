"""What device operations wait for on their own: their launch, and the operation before on their stream."""

import re

import numpy as np
from numpy.typing import NDArray

from asap.traces.graph.graph import ROOT, Cause, Edges, RankNodes
from asap.traces.graph.host import LONG_CALL
from asap.traces.trace import Integers, Launches, OperationKind, RankTrace

SMALL_GAP = 20_000
"""Nanoseconds: a longer pause between two operations is waiting, not the price of starting one. Of 27,000 kernels on
V100, A100, H100 and MI300X, 95 % follow the one before within 4 µs where they were launched in time."""

LONG_LATENCY = 100_000
"""Nanoseconds: an operation that starts later than this after its launch, on a stream with nothing else to do, waits
for something. Of 7,002 such launches 95 % took less than 6 µs on V100, A100 and H100, and 26 µs on MI300X."""


KERNELS_AND_COPIES = (
    (OperationKind.COMPUTE, OperationKind.COMMUNICATION), (OperationKind.COPY,), (OperationKind.MEMSET,),
)  # fmt: skip
"""Kinds of operation that start alike; the first of each group shows how."""


def operations_before(rank: RankTrace) -> Integers:
    """For each operation the row of the one before on its stream, ``-1`` for the first.

    Operations are ordered by start, so a stable sort by stream puts each behind the one before.
    """
    lane = rank.operations.lane
    order = np.argsort(lane, kind="stable")
    before = np.full(len(lane), -1, dtype=np.int64)
    same = lane[order][1:] == lane[order][:-1]
    before[order[1:][same]] = order[:-1][same]
    return before


def device_edges(
    rank: RankTrace, nodes: RankNodes, launches: Launches, before: Integers, free: NDArray[np.bool_]
) -> list[Edges]:
    """Durations, launches and the order of each stream.

    Times between them are those typical of the trace, of operations that are ``free``: that wait for no other stream.
    """
    operations = rank.operations
    start, end = nodes.operation_start, nodes.operation_end
    durations = operations.end - operations.start if rank.durations is None else rank.durations
    parts = [Edges.of(start, end, durations, Cause.DURATION)]
    parts += _launched(rank, nodes, launches, before, free)
    parts += _in_order(rank, nodes, before, stream_gaps(rank, launches, before, free))
    if not launches.known.any():
        parts.append(_pauses(rank, nodes, before))
    unanchored = np.flatnonzero((before < 0) & ~launches.known & ~np.isin(np.arange(len(start)), rank.waits[:, 0]))
    parts.append(Edges.of(np.full(len(unanchored), ROOT), start[unanchored], operations.start[unanchored], Cause.BEGIN))
    return parts


def _in_order(rank: RankTrace, nodes: RankNodes, before: Integers, gaps: Integers) -> list[Edges]:
    """Each operation starts when the one before on its stream has ended.

    Branches of a CUDA graph share the number of a stream and overlap: there the start follows from the start before.
    """
    operations = rank.operations
    start, end = nodes.operation_start, nodes.operation_end
    row = np.flatnonzero(before >= 0)
    source = before[row]
    overlaps = operations.start[row] < operations.end[source]
    one, other = row[~overlaps], row[overlaps]
    after = operations.start[other] - operations.start[source[overlaps]]
    return [
        Edges.of(end[source[~overlaps]], start[one], gaps[one], Cause.STREAM),
        Edges.of(start[source[overlaps]], start[other], after, Cause.STREAM),
    ]


def _pauses(rank: RankTrace, nodes: RankNodes, before: Integers) -> Edges:
    """Where no launch was recorded at all, a pause before or after an execution of the module is the host's."""
    operations = rank.operations
    bounds = np.sort([moment for step in rank.steps for moment in (step.start, step.end)])
    rows = np.setdiff1d(np.flatnonzero(before >= 0), rank.waits[:, 0])
    free, start = operations.end[before[rows]], operations.start[rows]
    at_bound = np.searchsorted(bounds, start, side="right") > np.searchsorted(bounds, free)
    outside = np.searchsorted(bounds, start, side="right") % 2 == 0
    host = rows[(start - free > SMALL_GAP) & (at_bound | outside)]
    gap = operations.start[host] - operations.end[before[host]]
    return Edges.of(nodes.operation_end[before[host]], nodes.operation_start[host], gap, Cause.HOST)


def stream_gaps(rank: RankTrace, launches: Launches, before: Integers, free: NDArray[np.bool_]) -> Integers:
    """For each operation the usual pause after the one before, if it was launched in time.

    The mean over its kind, for many short pauses add up. Pauses above ``SMALL_GAP`` are waiting, and so are many of
    those before collectives, which start like other kernels.
    """
    operations = rank.operations
    rows = np.flatnonzero(before >= 0)
    ended = operations.end[before[rows]]
    launched = np.where(launches.known[rows], rank.calls.end[launches.call[rows]], ended) if len(rank.calls) else ended
    gap = operations.start[rows] - ended
    in_time = (launched + SMALL_GAP <= ended) | ~launches.known[rows]
    usual = in_time & free[rows] & (gap >= 0) & (gap <= SMALL_GAP)
    gaps = np.zeros(len(operations), dtype=np.int64)
    for kinds in KERNELS_AND_COPIES:
        mine = gap[usual & (operations.kind[rows] == kinds[0])]
        gaps[np.isin(operations.kind, kinds)] = int(mine.mean()) if len(mine) else 0
    return gaps


def _launched(
    rank: RankTrace, nodes: RankNodes, launches: Launches, before: Integers, free: NDArray[np.bool_]
) -> list[Edges]:
    """An operation starts a typical time after the call that launches it has ended; collectives as other kernels do.

    One that starts while its call still runs was launched within it, after the host had prepared it (staged a copy,
    loaded a kernel): how long that took is host time. So were the others of the same CUDA graph.
    """
    operations, calls = rank.operations, rank.calls
    rows = np.flatnonzero(launches.known)
    call = launches.call[rows]
    ended = np.where(before[rows] >= 0, operations.end[before[rows]], np.iinfo(np.int64).min)
    early = operations.start[rows] <= calls.end[call]
    within = np.isin(call, call[early])
    parts = []
    latency, idle = _latency(operations.start[rows], calls.end[call], ended)
    for kinds in KERNELS_AND_COPIES:
        after = ~within & np.isin(operations.kind[rows], kinds)
        usual = latency[after & idle & free[rows] & (operations.kind[rows] == kinds[0]) & (latency <= LONG_LATENCY)]
        typical = int(np.percentile(usual, 50, method="lower")) if len(usual) else 0
        parts.append(Edges.of(nodes.call_end[call[after]], nodes.operation_start[rows[after]], typical, Cause.LAUNCH))
    offset, idle = _latency(operations.start[rows[within]], calls.start[call[within]], ended[within])
    idle &= early[within]
    least = int(offset[idle].min()) if idle.any() else 0
    prepared = np.where(idle, offset, np.minimum(offset, least))
    cause = np.where(prepared > LONG_CALL, Cause.HOST, Cause.LAUNCH)
    return [*parts, Edges(nodes.call_start[call[within]], nodes.operation_start[rows[within]], prepared, cause)]


def _latency(start: Integers, launched: Integers, free: Integers) -> tuple[Integers, NDArray[np.bool_]]:
    """Time from launch to start, and whether the stream had nothing else to do by then."""
    return start - launched, free <= launched


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
