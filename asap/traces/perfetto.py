"""A timeline that Perfetto and chrome://tracing show: what was measured beside what was replayed.

Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event Format).
"""

import json
from collections.abc import Iterator
from pathlib import Path

from asap.core.files import write_atomically
from asap.core.text import plain
from asap.traces.graph.graph import Graph
from asap.traces.trace import Events, Integers, RankTrace

US_PER_NS = 1e-3


def write_timeline(graph: Graph, path: Path) -> None:
    """Write one process for the measured and one for the replayed events of each rank.

    Raises:
        BadInputError: the folder cannot be written.
    """
    events = [event for times, name in _versions(graph) for event in _events(graph, times, name)]
    write_atomically(path, json.dumps({"displayTimeUnit": "ms", "traceEvents": events}, separators=(",", ":")))


def _versions(graph: Graph) -> tuple[tuple[Integers, str], ...]:
    return (graph.measured, "measured"), (graph.replayed, "replayed")


def _events(graph: Graph, times: Integers, version: str) -> Iterator[dict[str, object]]:
    second = version == "replayed"
    for rank, nodes in zip(graph.trace.ranks, graph.nodes, strict=True):
        process = 2 * rank.rank + second
        yield _metadata("process_name", process, 0, f"rank {rank.rank} {version}")
        for lane, label in enumerate(rank.lanes):
            yield _metadata("thread_name", process, lane, label)
        yield from _slices(rank, rank.operations, times[nodes.operation_start], times[nodes.operation_end], process)
        yield from _slices(rank, rank.calls, times[nodes.call_start], times[nodes.call_end], process)


def _slices(
    rank: RankTrace, table: Events, start: Integers, end: Integers, process: int
) -> Iterator[dict[str, object]]:
    names = [plain(name, 200) for name in rank.names]
    columns = (table.name.tolist(), table.lane.tolist(), start.tolist(), end.tolist())
    for name, lane, begin, finish in zip(*columns, strict=True):
        slice_ = {"ph": "X", "name": names[name], "pid": process, "tid": lane}
        yield slice_ | {"ts": begin * US_PER_NS, "dur": (finish - begin) * US_PER_NS}


def _metadata(what: str, process: int, thread: int, name: str) -> dict[str, object]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": plain(name, 200)}}
