"""What host threads wait for: themselves, and the device where a call blocks."""

import re
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asap.traces.graph.graph import ROOT, Cause, Edges, RankNodes
from asap.traces.trace import Integers, Launches, OperationKind, RankTrace

_SYNCHRONISING = re.compile(r"(?:cuda|hip|cu)\w{0,60}Synchronize(?:_\w+)?")
_BUSY_AFTER = re.compile(r"(?:cuda|hip)Free|.*block_until_ready")
"""Waits for the device, as the references of CUDA, HIP and JAX say, and has then still to return memory, or waits for
other devices."""

_GRAPH_LAUNCH = re.compile(r"(?:cuda|hip|cu)GraphLaunch(?:_\w+)?")
"""Starts all operations of a CUDA graph, and returns without waiting for any."""

FULL_QUEUE = 512
"""Launches whose operations are not over; a graph is one. A CUDA context holds about a thousand entries, of which
events and waits take some: on A100 with JAX, launches began to block at 960 to 1,016 outstanding operations."""

LONG_CALL = 20_000
"""Nanoseconds that a launch seldom takes unless it waits: 95 % of launches on V100, A100, H100 and MI300X take less."""


def without_pollers(rank: RankTrace) -> RankTrace:
    """Leave out the calls of threads that launch nothing: they only look whether something is done."""
    thread = rank.caller[rank.calls.lane]
    launches = rank.launches
    working = np.unique(thread[launches.call[launches.known]])
    if rank.step_lane >= 0:
        working = np.append(working, rank.caller[rank.step_lane])
    return replace(rank, calls=rank.calls.take(np.isin(thread, working)))


class Blocking(NamedTuple):
    """Calls that return when an operation has ended, and how long after it they typically do; those that copy as long
    as their operation runs return so long after its start, and have prepared it for ``delay``."""

    call: Integers
    operation: Integers
    delay: Integers
    since_start: Integers
    """-1 for those that wait for the end."""


def host_edges(rank: RankTrace, nodes: RankNodes, blocking: Blocking) -> list[Edges]:
    """Each thread in its order, with the gaps that were measured; blocking calls end when the device is done."""
    stages = blocking.since_start >= 0
    source = np.where(stages, nodes.operation_start[blocking.operation], nodes.operation_end[blocking.operation])
    weight = np.where(stages, blocking.since_start, blocking.delay)
    parts = [Edges.of(source, nodes.call_end[blocking.call], weight, Cause.BLOCKED)]
    thread = rank.caller[rank.calls.lane]
    working = set(thread.tolist())
    if rank.step_lane >= 0:
        working.add(int(rank.caller[rank.step_lane]))
    for lane in sorted(working):
        calls = np.flatnonzero(thread == lane)
        parts += _chain(rank, nodes, calls, lane, blocking)
    return parts


def _chain(rank: RankTrace, nodes: RankNodes, calls: Integers, lane: int, blocking: Blocking) -> list[Edges]:
    points = [nodes.call_start[calls], nodes.call_end[calls]]
    times = [rank.calls.start[calls], rank.calls.end[calls]]
    if rank.step_lane >= 0 and rank.caller[rank.step_lane] == lane:
        points += [nodes.step_start, nodes.step_end]
        times += [np.array([step.start for step in rank.steps]), np.array([step.end for step in rank.steps])]
    point, time = np.concatenate(points), np.concatenate(times)
    order = np.lexsort((point, time))
    point, time = point[order], time[order]
    gap = np.diff(time)
    place = {int(node): i for i, node in enumerate(point[1:])}
    for call, alone in zip(nodes.call_end[blocking.call].tolist(), blocking.delay.tolist(), strict=True):
        if call in place:
            gap[place[call]] = min(gap[place[call]], alone)
    begin = Edges.of(np.array([ROOT]), point[:1], time[:1], Cause.BEGIN)
    return [begin, Edges.of(point[:-1], point[1:], gap, Cause.HOST)]


def blocking_calls(rank: RankTrace, launches: Launches) -> Blocking:
    """Calls that ended after an operation that they waited for; what passes then is what such a call takes with nothing
    to wait for: the median of its sort, or its own time if it does more."""
    waits = [_synchronising(rank, pattern) for pattern in (_BUSY_AFTER, _SYNCHRONISING)]
    copying, staging = _copying(rank, launches)
    sorts = (*waits, copying, _throttled(rank, launches), staging)
    own, *delays = [rank.calls.end[call] - rank.operations.end[operation] for call, operation in sorts[:-1]]
    typical = [own, *(np.full(len(delay), int(np.median(delay)) if len(delay) else 0) for delay in delays)]
    call, operation = (np.concatenate(column).astype(np.int64) for column in zip(*sorts, strict=True))
    started = rank.operations.start[staging[1]]
    since = np.full(len(call), -1)
    since[len(call) - len(started) :] = rank.calls.end[staging[0]] - started
    return Blocking(call, operation, np.concatenate([*typical, started - rank.calls.start[staging[0]]]), since)


def _synchronising(rank: RankTrace, pattern: re.Pattern[str]) -> tuple[Integers, Integers]:
    """A synchronising call waits for the last operation that ended while it ran."""
    call = np.flatnonzero(_named(rank, pattern))
    operation = _last_ended(rank, rank.calls.end[call])
    inside = (operation >= 0) & (rank.operations.end[operation] > rank.calls.start[call])
    return call[inside], operation[inside]


def _named(rank: RankTrace, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    """Which calls are of that name."""
    return np.array([bool(pattern.fullmatch(name)) for name in rank.names], dtype=bool)[rank.calls.name]


def _copying(rank: RankTrace, launches: Launches) -> list[tuple[Integers, Integers]]:
    """A copying call that outlasts its copy waited for it; one that lasts while its copy runs, though not until its
    end, puts pageable memory through a buffer."""
    copies = np.flatnonzero(launches.known & (rank.operations.kind == OperationKind.COPY))
    copies = copies[~_named(rank, _GRAPH_LAUNCH)[launches.call[copies]]]
    call = launches.call[copies]
    left, ran = rank.operations.end[copies] - rank.calls.end[call], rank.calls.end[call] - rank.operations.start[copies]
    staged = (left > 0) & (ran > LONG_CALL) & (rank.calls.start[call] <= rank.operations.start[copies])
    return [(call[mask], copies[mask]) for mask in (left <= 0, staged)]


def _throttled(rank: RankTrace, launches: Launches) -> tuple[Integers, Integers]:
    """A launch that takes long while the queue of launches is full waits until an operation ends."""
    calls = rank.calls
    call, number = np.unique(launches.call[launches.known], return_inverse=True)
    over = np.zeros(len(call), dtype=np.int64)
    np.maximum.at(over, number, rank.operations.end[launches.known])
    launched, ended = np.sort(calls.start[call]), np.sort(over)
    outstanding = np.searchsorted(launched, calls.end[call], side="right") - np.searchsorted(ended, calls.end[call])
    operation = _last_ended(rank, calls.end[call])
    full = (outstanding >= FULL_QUEUE) & (calls.end[call] - calls.start[call] > LONG_CALL) & (operation >= 0)
    return call[full], operation[full]


def _last_ended(rank: RankTrace, moment: Integers) -> Integers:
    """The operation that ended last before each moment, ``-1`` for none."""
    by_end = np.argsort(rank.operations.end, kind="stable")
    place = np.searchsorted(rank.operations.end[by_end], moment, side="right") - 1
    return np.where(place >= 0, by_end[np.maximum(place, 0)], -1)
