"""A traced GPU run as a profile: step time, KPIs and kernels, as they are read of an XPlane file.

Shares are of the recorded window, means over ranks. A collective counts with the time that nothing else hides.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, median, pstdev
from typing import NamedTuple, cast

import numpy as np

from asap.core.text import plain
from asap.profiles import Gap, Operation, Profile
from asap.profiles.host_transfers import is_host_copy_event
from asap.profiles.kernel_names import bound_of_kernel, compute_class
from asap.profiles.kpis import Busy, kpis_from
from asap.profiles.operations import longest_first
from asap.profiles.profile import CollectiveKind
from asap.profiles.steps import Steps
from asap.traces.analysis.breakdown import RankTimes, breakdown, exposed_time, rank_times
from asap.traces.analysis.iterations import device_iterations, step_of_operations
from asap.traces.analysis.quality import doubts
from asap.traces.analysis.step_time import iterations
from asap.traces.graph.graph import Graph
from asap.traces.operations import ANY_COLLECTIVE, collective_kind
from asap.traces.trace import NS, RankTrace

EXPOSED = "Collectives count with the time that no computation hides."
KERNELS = Gap(what="FLOPs and bytes of kernels: a trace holds their times, and their names tell what bounds them")
_HOST_COPY = "host copy"
START_UP = 2.0
"""A first execution that takes as many times the others, or more, holds the start-up of the job."""

_Timed = tuple[RankTrace, RankTimes]


def profile_of(graph: Graph, source: str) -> Profile:
    """The profile of a traced run.

    Args:
        graph: of all ranks that are at hand.
        source: where it was read from.
    """
    settled = _settled(graph)
    ranks = [rank for rank, _ in settled]
    marked = any(rank.steps for rank in ranks)
    steps = _steps(graph) if marked else None
    operations = _operations(settled, steps)
    worlds = [rank.world_size for rank in ranks if rank.world_size]
    return Profile(
        source=plain(source),
        extent="step" if marked else "window",
        device_type=next((rank.device for rank in ranks if rank.device), None),
        devices=max(worlds, default=len(ranks) if len(ranks) > 1 else None),
        kpis=kpis_from(steps, _busy(settled), operations),
        operations=operations,
        gaps=(KERNELS,),
        warnings=(EXPOSED, *doubts(graph), *graph.trace.notes),
    )


def _settled(graph: Graph) -> list[_Timed]:
    """Each rank without a first execution that holds the start-up of the job."""
    found: list[_Timed] = []
    for rank, nodes, times in zip(graph.trace.ranks, graph.nodes, rank_times(graph, graph.measured), strict=True):
        lengths = [each.measured_s for each in device_iterations(graph, rank, nodes)]
        starts_up = rank.executions and _starts_up(lengths)
        found.append(_without_first(rank, times) if starts_up else (rank, times))
    return found


def _without_first(rank: RankTrace, times: RankTimes) -> _Timed:
    later = step_of_operations(rank) > 0
    columns = [column[later] for column in (times.start, times.end, times.launched, times.arrival)]
    kept = replace(rank, operations=rank.operations.take(later), steps=rank.steps[1:])
    return kept, RankTimes(*columns, window=(int(columns[0].min()), times.window[1]))


def _starts_up(lengths: Sequence[float]) -> bool:
    return len(lengths) > 2 and lengths[0] > START_UP * median(lengths[1:])


def _steps(graph: Graph) -> Steps:
    """Of the slowest rank."""
    measured = [[times.measured_s for times in rank] for rank in iterations(graph)]
    settled = [times[1:] if _starts_up(times) else times for times in measured]
    times = max(settled, key=median)
    return Steps(median(times), min(times), max(times), pstdev(times), len(times))


def _busy(ranks: Sequence[_Timed]) -> Busy:
    parts = [breakdown(*rank) for rank in ranks]
    host = fmean(part.host_s / part.window_s for part in parts)
    idle = fmean(part.idle_s / part.window_s for part in parts)
    return Busy(duty_cycle=1.0 - host - idle, idle=idle, input=host)


def _operations(ranks: Sequence[_Timed], steps: Steps | None) -> tuple[Operation, ...]:
    """Operations of one name are one."""
    fractions: defaultdict[_Kernel, float] = defaultdict(float)
    occurrences: Counter[_Kernel] = Counter()
    for rank, times in ranks:
        window = NS * max(times.window[1] - times.window[0], 1)
        seconds = np.bincount(rank.operations.name, exposed_time(rank, times))
        counts = np.bincount(rank.operations.name)
        for number in np.flatnonzero(counts).tolist():
            kernel = _Kernel.of(str(rank.names[number]))
            fractions[kernel] += float(seconds[number]) / window / len(ranks)
            occurrences[kernel] += int(counts[number])
    runs = sum(max(len(rank.steps), 1) for rank, _ in ranks)
    return longest_first(
        kernel.operation(fraction, steps.mean if steps else None, occurrences[kernel] / runs)
        for kernel, fraction in fractions.items()
    )


class _Kernel(NamedTuple):
    """What a profile calls one operation."""

    name: str
    category: str
    collective: CollectiveKind | None

    @classmethod
    def of(cls, name: str) -> "_Kernel":
        if kind := collective_kind(name):
            return cls(name, kind, None if kind == ANY_COLLECTIVE else cast(CollectiveKind, kind))
        return cls(name, _HOST_COPY if is_host_copy_event(name) else compute_class(name), None)

    def operation(self, fraction: float, step_s: float | None, occurrences: float) -> Operation:
        is_copy, communicates = self.category == _HOST_COPY, collective_kind(self.name) is not None
        return Operation(
            name=self.name,
            category=self.category,
            fraction=fraction,
            time_s=None if step_s is None else fraction * step_s,
            occurrences=occurrences,
            bound="host" if is_copy else "unknown" if communicates else bound_of_kernel(self.name),
            collective=self.collective,
            collective_wait=communicates and self.collective is None,
            host_copy=is_copy,
        )
