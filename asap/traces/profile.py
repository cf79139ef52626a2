"""A traced GPU run as a profile: step time, KPIs and kernels, as they are read of an XPlane file.

Shares are of the recorded window, means over ranks. A collective counts with the time that nothing else hides.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean, median, pstdev
from typing import Literal

from asap.core.text import plain
from asap.hardware import Chip, find_chip
from asap.profiles import Gap, Profile
from asap.profiles.host_time import SYNCHRONISATION, Activities, activity_of, before_first, split
from asap.profiles.kpis import JAX_TRACE, NO_BACKWARD_PASS, Busy, kpis_from, looks_like_training
from asap.profiles.operations import Steps
from asap.profiles.operators import program_roofline
from asap.traces.analysis.breakdown import RankTimes, breakdown, host_waits, rank_times
from asap.traces.analysis.iterations import iterations
from asap.traces.analysis.quality import doubts
from asap.traces.graph.graph import Graph
from asap.traces.kernel_operations import kernel_operations
from asap.traces.readers.operators import HostWork, columns_of
from asap.traces.trace import RankTrace

EXPOSED = "Communication is the time of collectives that no computation hides."
_WITH_SHAPES = "torch.profiler.profile(record_shapes=True, with_stack=True)"
_CAPTURES = {"pytorch": _WITH_SHAPES, "xla": JAX_TRACE, None: f"PyTorch: {_WITH_SHAPES}; JAX: {JAX_TRACE}"}
_NO_COSTS = "FLOPs and bytes of kernels: what bounds them is a guess from their names"
_FRAMEWORKS: Mapping[str, Literal["pytorch", "xla"]] = {"kineto": "pytorch", "xplane": "xla", "nsys-jax": "xla"}
"""What a recording is of, where its format says so."""

_Timed = tuple[RankTrace, RankTimes]


def profile_of(
    graph: Graph, source: str, hosts: Mapping[int, HostWork] | None = None, chip: Chip | None = None
) -> Profile:
    """The profile of a traced run.

    Args:
        graph: of all ranks that are at hand.
        source: where it was read from.
        hosts: what the host did, by rank, where it was read.
        chip: that ran it, where the trace does not name it.
    """
    ranks, hosts = graph.trace.ranks, hosts or {}
    timed = list(zip(ranks, rank_times(graph, graph.measured), strict=True))
    marked = any(rank.steps for rank in ranks)
    steps = _steps(graph) if marked else None
    device = next((rank.device for rank in ranks if rank.device), None)
    chip = named.chip if device and (named := find_chip(device)) else chip
    kernels = kernel_operations(timed, hosts, chip, steps.mean if steps else None)
    operations, trains = kernels.operations, looks_like_training(str(name) for rank in ranks for name in rank.names)
    framework = _FRAMEWORKS.get(graph.trace.format)
    no_costs = Gap(what=_NO_COSTS, capture=_CAPTURES[framework])
    exposed = [EXPOSED] if any(op.is_collective for op in operations) else []
    read = [each for each in timed if len(each[0].calls) and (each[0].rank in hosts or not hosts)]
    known = [(*each, _activities(each[0], hosts)) for each in read]
    before = () if marked else filter(None, (before_first(activities, times.window) for _, times, activities in known))
    worlds = [rank.world_size for rank in ranks if rank.world_size]
    return Profile(
        source=plain(source), extent="step" if marked else "window", framework=framework, device_type=device,
        devices=max(worlds, default=len(ranks) if len(ranks) > 1 else None),
        kpis=kpis_from(steps, _busy(timed), operations), operations=operations, modules=kernels.modules,
        host=_host(known), roofline=program_roofline(operations, chip),
        gaps=() if any(op.roofline_efficiency for op in operations) else (no_costs,),
        warnings=(*exposed, *before, *([] if trains else [NO_BACKWARD_PASS]), *doubts(graph), *graph.trace.notes),
    )  # fmt: skip


def _host(known: Sequence[tuple[RankTrace, RankTimes, Activities]]) -> dict[str, float]:
    """What the host did while the device waited for it, mean over the ranks of which that was read."""
    shares: defaultdict[str, float] = defaultdict(float)
    for rank, times, activities in known:
        for kind, share in split(host_waits(rank, times), activities, times.window[1] - times.window[0]).items():
            shares[kind] += share / len(known)
    return dict(sorted(shares.items(), key=lambda each: -each[1]))


def _activities(rank: RankTrace, hosts: Mapping[int, HostWork]) -> Activities:
    """Of the threads that launch; where their work was not read, by the calls and spans of the trace alone."""
    if work := hosts.get(rank.rank):
        return work.shifted(_origin(rank, work))
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for events in (rank.calls, rank.spans):
        for name, start, end in zip(events.name.tolist(), events.start.tolist(), events.end.tolist(), strict=True):
            if kind := activity_of(str(rank.names[name]), end - start):
                found[kind].append((start, end))
    columns = {kind: columns_of(each) for kind, each in found.items()}
    return Activities(columns, columns.get(SYNCHRONISATION, Activities({}).blocking))


def _origin(rank: RankTrace, work: HostWork) -> int:
    """Where the clock of the trace begins, by the calls that both readings have."""
    calls = zip(rank.calls.correlation.tolist(), rank.calls.start.tolist(), strict=True)
    return next((work.calls_start[number] - start for number, start in calls if number in work.calls_start), 0)


def _steps(graph: Graph) -> Steps:
    """Of the slowest rank."""
    times = max(([times.measured_s for times in rank] for rank in iterations(graph)), key=median)
    return Steps(median(times), min(times), max(times), pstdev(times), len(times))


def _busy(ranks: Sequence[_Timed]) -> Busy:
    parts = [breakdown(*rank) for rank in ranks]
    host = fmean(part.host_s / part.window_s for part in parts)
    idle = fmean(part.idle_s / part.window_s for part in parts)
    return Busy(duty_cycle=1.0 - host - idle, idle=idle, input=host)
