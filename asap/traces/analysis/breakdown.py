"""Where the time of a rank goes."""

from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asap.traces.analysis.iterations import iterations
from asap.traces.analysis.report import StepParts
from asap.traces.graph.graph import Graph
from asap.traces.graph.host import LONG_CALL
from asap.traces.trace import ANY_COLLECTIVE, NS, Integers, OperationKind, RankTrace, collective_kind


class Breakdown(NamedTuple):
    """Seconds of the recorded window of a rank.

    The first five add up to the window; ``waiting_s`` is a part of the exposed communication,
    and ``bubble_s`` of that.
    """

    exposed_compute_s: float
    """Only computing, copying or clearing memory."""
    exposed_communication_s: float
    """Only communicating."""
    overlap_s: float
    """Communicating and working at the same time."""
    host_s: float
    """The device has nothing to do until the host launches the next operation, or while a call waits for it."""
    idle_s: float
    """The device pauses between operations that were launched in time."""
    waiting_s: float
    """Only communicating, and that is waiting for a rank that has not come yet."""
    bubble_s: float
    """Of the waiting, that for another stage of a pipeline: in transfers between two ranks."""
    exposed_by_collective_s: dict[str, float]
    """Exposed communication by kind of collective; several at once share the time."""

    @property
    def window_s(self) -> float:
        """All of it."""
        return sum(self[:5])


class RankTimes(NamedTuple):
    """When the operations of a rank ran, and when each was launched; by row."""

    start: Integers
    end: Integers
    launched: Integers
    arrival: Integers
    """When the last rank came to the collective; its own start for all other operations."""
    blocked: tuple[Integers, Integers]
    """When calls waited for the device: starts and ends."""
    window: tuple[int, int]
    """All that was recorded; where no step is marked, from the first operation to the last, which is taken for one."""


def rank_times(graph: Graph, times: Integers) -> list[RankTimes]:
    """For each rank, from ``graph.measured`` or ``graph.replayed``."""
    starts = [times[nodes.operation_start] for nodes in graph.nodes]
    arrivals = [times[nodes.operation_met] for nodes in graph.nodes]
    found = []
    columns = (graph.trace.ranks, graph.nodes, graph.blocked, starts, arrivals)
    for rank, nodes, waiting, start, arrival in zip(*columns, strict=True):
        launches = rank.launches
        ends = times[nodes.call_end]
        launched = np.where(launches.known, ends[launches.call], np.iinfo(np.int64).min) if len(ends) else start * 0
        ran = (nodes.operation_start, nodes.operation_end)
        mine = np.concatenate([times[every] for every in (vars(nodes).values() if rank.steps else ran)])
        window = (int(mine.min()), int(mine.max()))
        blocked = (times[nodes.call_start[waiting]], times[nodes.call_end[waiting]])
        found.append(RankTimes(start, times[nodes.operation_end], launched, arrival, blocked, window))
    return found


def step_parts(graph: Graph, step_s: float) -> StepParts:
    """Of the device that works longest, in a replayed step that takes ``step_s`` in all.

    A late stage of a pipeline ends before the step does, and begins to record with the others: so a step is as long as
    that of the rank that recorded longest.
    """
    ranks, times = graph.trace.ranks, rank_times(graph, graph.replayed)
    found = [breakdown(rank, time) for rank, time in zip(ranks, times, strict=True)]
    count = [max(len(rank.steps), 1) for rank in ranks]
    lengths = [fmean(each.replayed_s for each in rank) for rank in iterations(graph)]
    recorded = [parts.window_s / steps for parts, steps in zip(found, count, strict=True)]
    place = max(
        range(len(ranks)), key=lambda each: (found[each].exposed_compute_s + found[each].overlap_s) / count[each]
    )
    longest, second = found[place], step_s / (max(*lengths, *recorded) * count[place] or 1.0)
    parts = {
        "compute_s": second * (longest.exposed_compute_s + longest.overlap_s),
        "communication_s": second * (longest.exposed_communication_s - longest.waiting_s),
        "waiting_s": second * (longest.waiting_s - longest.bubble_s), "bubble_s": second * longest.bubble_s,
        "host_s": second * longest.host_s,
    }  # fmt: skip
    return StepParts(**parts, idle_s=max(step_s - sum(parts.values()), 0.0))


def breakdown(rank: RankTrace, times: RankTimes) -> Breakdown:
    """What the device did at each moment of the window."""
    timeline = _Timeline.of(rank, times)
    begin, end = _host(timeline, times)
    host = int((end - begin).sum())
    return Breakdown(
        exposed_compute_s=timeline.seconds(timeline.works & (timeline.transfers == 0)),
        exposed_communication_s=timeline.seconds(timeline.exposed),
        overlap_s=timeline.seconds(timeline.works & (timeline.transfers > 0)), host_s=NS * host,
        idle_s=timeline.seconds(timeline.quiet) - NS * host,
        waiting_s=timeline.seconds(timeline.exposed & (timeline.waits == timeline.transfers)),
        bubble_s=timeline.seconds(timeline.exposed & (timeline.stages > 0) & (timeline.waits == timeline.transfers)),
        exposed_by_collective_s=_by_collective(rank, _exposed(rank, times, timeline)),
    )  # fmt: skip


def exposed_time(rank: RankTrace, times: RankTimes) -> NDArray[np.float64]:
    """Seconds that each operation is exposed: a collective while nothing works, all others while they run.

    Operations that run at once share the time.
    """
    return _exposed(rank, times, _Timeline.of(rank, times))


def _exposed(rank: RankTrace, times: RankTimes, timeline: "_Timeline") -> NDArray[np.float64]:
    communicates = rank.operations.kind == OperationKind.COMMUNICATION
    transfers, works = np.maximum(timeline.transfers, 1), np.maximum(timeline.working, 1)
    communication = _within(timeline.moments, np.where(timeline.exposed, timeline.length / transfers, 0), times)
    work = _within(timeline.moments, np.where(timeline.works, timeline.length / works, 0), times)
    return NS * np.where(communicates, communication, work)


class _Timeline(NamedTuple):
    """Pieces of time between two moments, their lengths, and how many operations run in each.

    ``waits`` are collectives of which a rank has not come yet, and ``stages`` those of them between two ranks.
    """

    moments: Integers
    length: Integers
    working: Integers
    transfers: Integers
    waits: Integers
    stages: Integers

    @classmethod
    def of(cls, rank: RankTrace, times: RankTimes) -> "_Timeline":
        communicates = rank.operations.kind == OperationKind.COMMUNICATION
        points = np.concatenate([*times[:2], times.arrival, *times.blocked, times.window])
        moments = np.unique(points.clip(*times.window))
        waited = np.minimum(times.arrival, times.end)
        between = np.array([*(call.pair is not None for call in rank.collectives), False], dtype=bool)
        between = communicates & between[rank.operations.collective]
        return cls(
            moments,
            np.diff(moments),
            working=_active(moments, times.start[~communicates], times.end[~communicates]),
            transfers=_active(moments, times.start[communicates], times.end[communicates]),
            waits=_active(moments, times.start[communicates], waited[communicates]),
            stages=_active(moments, times.start[between], waited[between]),
        )

    @property
    def works(self) -> NDArray[np.bool_]:
        """Something other than a collective runs."""
        return self.working > 0

    @property
    def exposed(self) -> NDArray[np.bool_]:
        """Nothing but collectives runs."""
        return (self.transfers > 0) & ~self.works

    @property
    def quiet(self) -> NDArray[np.bool_]:
        """Nothing runs."""
        return (self.transfers == 0) & ~self.works

    def seconds(self, mask: NDArray[np.bool_]) -> float:
        """Of all pieces that are meant."""
        return NS * float(self.length[mask].sum())


def _active(moments: Integers, start: Integers, end: Integers) -> Integers:
    """How many of the intervals hold each piece of time between two moments."""
    change = np.zeros(len(moments) + 1, dtype=np.int64)
    np.add.at(change, np.searchsorted(moments, start), 1)
    np.add.at(change, np.searchsorted(moments, np.maximum(start, end)), -1)
    return np.cumsum(change)[: len(moments) - 1]


def host_waits(rank: RankTrace, times: RankTimes) -> tuple[Integers, Integers]:
    """When nothing ran because the next operation had not been launched, or a call waited: starts and ends."""
    return _host(_Timeline.of(rank, times), times)


def _host(timeline: _Timeline, times: RankTimes) -> tuple[Integers, Integers]:
    """The quiet time before the next launch is over, or in a call that waits, if not short; after the last one, all."""
    order = np.argsort(times.start, kind="stable")
    begin, end = (side[timeline.quiet] for side in (timeline.moments[:-1], timeline.moments[1:]))
    following = np.searchsorted(times.start[order], end)
    is_last = following == len(order)
    launched = times.launched[order[np.minimum(following, len(order) - 1)]]
    waits = (_active(timeline.moments, *times.blocked)[timeline.quiet] > 0) & (end - begin > LONG_CALL)
    launched = np.where(is_last | waits, end, launched)
    return begin, np.clip(launched, begin, end)


def _within(moments: Integers, share: NDArray[np.float64], times: RankTimes) -> NDArray[np.float64]:
    """What each operation gets of the pieces of time in which it runs."""
    total = np.concatenate([[0.0], np.cumsum(share)])
    first, last = (np.searchsorted(moments, moment) for moment in (times.start, times.end))
    return total[last] - total[first]


def _by_collective(rank: RankTrace, exposed: NDArray[np.float64]) -> dict[str, float]:
    found: dict[str, float] = {}
    rows = np.flatnonzero(rank.operations.kind == OperationKind.COMMUNICATION)
    for name, seconds in zip(rank.operations.name[rows].tolist(), exposed[rows].tolist(), strict=True):
        kind = collective_kind(rank.names[name]) or ANY_COLLECTIVE
        found[kind] = found.get(kind, 0.0) + seconds
    return found
