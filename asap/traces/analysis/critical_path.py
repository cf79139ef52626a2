"""The chain of waits that decides when the run ends, and what lies on it."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asap.profiles.collectives import compute_class
from asap.traces.analysis.report import PathPart
from asap.traces.graph.graph import Cause, Edges, Graph
from asap.traces.trace import NS, Integers, OperationKind, RankTrace, collective_kind

_NAMED = {
    Cause.BEGIN: ("unknown", "before its recording began"), Cause.LAUNCH: ("launch", "launch latency"),
    Cause.STREAM: ("pause", "between operations"), Cause.UNSEEN: ("waiting", "for another stage"),
}  # fmt: skip


def path_edges(graph: Graph) -> Integers:
    """Rows of the edges of the critical path, as replayed: from the start of the trace to its last moment, or, where no
    step is marked, from the first operation to the last."""
    edges, time = graph.edges, graph.replayed
    tight = np.flatnonzero(time[edges.source] + edges.weight == time[edges.target])
    deciding = np.full(len(time), -1, dtype=np.int64)
    deciding[edges.target[tight]] = tight
    sources = edges.source.tolist()
    begin, node, path = int(time.min()), int(np.argmax(time)), []
    if not any(rank.steps for rank in graph.trace.ranks):
        ends = np.concatenate([nodes.operation_end for nodes in graph.nodes])
        node = int(ends[np.argmax(time[ends])])
        begin = min(int(time[nodes.operation_start].min()) for nodes in graph.nodes)
    following = deciding.tolist()
    while time[node] > begin and (edge := following[node]) >= 0:
        path.append(edge)
        node = sources[edge]
    return np.array(path[::-1], dtype=np.int64)


def critical_path(graph: Graph) -> list[PathPart]:
    """What lies on the path, largest first."""
    edges = graph.edges.take(path_edges(graph))
    labels = _Labels(graph)
    seconds: dict[tuple[int, str, str], float] = defaultdict(float)
    count: dict[tuple[int, str, str], int] = defaultdict(int)
    for source, target, weight, cause in _rows(edges):
        if weight:
            key = labels.of(source, target, Cause(cause))
            seconds[key] += NS * weight
            count[key] += 1
    total = sum(seconds.values()) or 1.0
    return [
        PathPart(rank=rank, category=category, name=name, time_s=taken, share=taken / total, occurrences=count[key])
        for key, taken in sorted(seconds.items(), key=lambda each: -each[1])
        for rank, category, name in (key,)
    ]


def _rows(edges: Edges) -> Sequence[tuple[int, int, int, int]]:
    return np.stack([edges.source, edges.target, edges.weight, edges.cause], axis=1).tolist()


class _Labels:
    """What a node stands for: the rank, and the row of its operation or call."""

    def __init__(self, graph: Graph):
        self._ranks = graph.trace.ranks
        self._rank, self._operation, self._call = (np.full(len(graph.measured), -1) for _ in range(3))
        self._starts = np.zeros(len(graph.measured), dtype=bool)
        for number, nodes in enumerate(graph.nodes):
            for start, end, rows in (
                (nodes.operation_met, nodes.operation_end, self._operation),
                (nodes.operation_start, nodes.operation_end, self._operation),
                (nodes.call_start, nodes.call_end, self._call),
                (nodes.step_start, nodes.step_end, None),
            ):
                self._rank[start] = self._rank[end] = number
                self._starts[start] = True
                if rows is not None:
                    rows[start] = rows[end] = np.arange(len(start))

    def of(self, source: int, target: int, cause: Cause) -> tuple[int, str, str]:
        """Rank, category and name of the time that an edge takes."""
        rank = self._ranks[self._rank[target]].rank
        if cause is Cause.INFERRED or (cause in (Cause.STREAM, Cause.BLOCKED) and self._starts[source]):
            return self._device(source)
        if cause in _NAMED:
            return rank, *_NAMED[cause]
        if cause in (Cause.HOST, Cause.BLOCKED):
            call, launches = self._call[target], self._starts[source] and self._operation[target] >= 0
            if cause is Cause.HOST and not launches and (self._starts[target] or not 0 <= call == self._call[source]):
                return rank, "host", "between calls"
            trace = self._ranks[self._rank[target]]
            return rank, "host", trace.names[trace.calls.name[self._call[source] if launches else call]]
        return self._device(target)

    def _device(self, node: int) -> tuple[int, str, str]:
        trace = self._ranks[self._rank[node]]
        row = int(self._operation[node])
        kind = OperationKind(int(trace.operations.kind[row]))
        return trace.rank, kind.name.lower(), _described(trace.names[trace.operations.name[row]])


def _described(name: str) -> str:
    """A collective by its kind (older NCCL runs others too as send and receive), a kernel by its class and name."""
    if kind := collective_kind(name):
        return f"{kind} kernel" if kind == "send-recv" else kind
    found = compute_class(name)
    return name if found == "other" else f"{found}: {name}"


Nanoseconds = NDArray[np.float64]


def share_cores(ranks: Sequence[RankTrace]) -> bool:
    """Whether the devices are virtual ones of a CPU."""
    return len(ranks) > 1 and all(rank.groups_unknown for rank in ranks)


def core_times(ranks: Sequence[RankTrace]) -> list[Nanoseconds]:
    """For each rank, what each of its operations took."""
    begin, end = _begins(ranks), [rank.operations.end for rank in ranks]
    starts, ends = np.sort(np.concatenate(begin)), np.sort(np.concatenate(end))
    moments = np.unique(np.concatenate([starts, ends]))
    running = np.searchsorted(starts, moments, side="right") - np.searchsorted(ends, moments, side="right")
    shared = np.diff(moments) / np.maximum(running[:-1], 1)
    passed = np.concatenate([[0.0], np.cumsum(shared)])
    spans = zip(begin, end, strict=True)
    return [passed[np.searchsorted(moments, to)] - passed[np.searchsorted(moments, since)] for since, to in spans]


def _begins(ranks: Sequence[RankTrace]) -> list[Integers]:
    """When each operation began to work: a collective as long before its end as the shortest of all ranks took.

    The n-th operation of a name is the n-th of that name on other ranks.
    """
    begin = [rank.operations.start.copy() for rank in ranks]
    rows: dict[str, list[tuple[int, Integers]]] = defaultdict(list)
    for number, rank in enumerate(ranks):
        events = rank.operations
        communicating = events.kind == OperationKind.COMMUNICATION
        for name in np.unique(events.name[communicating]).tolist():
            rows[str(rank.names[name])].append((number, np.flatnonzero(communicating & (events.name == name))))
    for found in rows.values():
        if len({len(mine) for _, mine in found}) == 1:
            times = [ranks[rank].operations.end[mine] - ranks[rank].operations.start[mine] for rank, mine in found]
            for rank, mine in found:
                begin[rank][mine] = ranks[rank].operations.end[mine] - np.min(times, axis=0)
    return begin
