"""Tables of passes, as ByteDance publishes of its trainings (StragglerAnalysis): a row for each forward and backward
pass, transfer between stages, collective and optimizer step of each worker. Parquet, a file a job.

Times begin anew with each step, and steps lie apart: they are put end to end. What waits for what is not in the table;
it follows from how Megatron-LM runs a pipeline (Lin et al. 2025, "Understanding Stragglers in Large Model Training").
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from asap.core.errors import BadInputError
from asap.core.text import plain
from asap.traces.trace import CollectiveCall, Events, Group, Integers, OperationKind, RankTrace, Step

_COLUMNS = ("dp_rank", "stage", "rank", "step", "optype", "start_ts", "duration", "seq_id", "gmc")
_NANOSECONDS = 1e9
_TOLERANCE = 100_000
"""Nanoseconds: times are 32-bit seconds, 4 µs apart after a minute, and operations follow each other within 0.1 ms."""
_NAMES = {
    "forward-compute": "forward", "backward-compute": "backward", "optimizer": "optimizer",
    "gc": "garbage collection", "params-all-gather": "all-gather.parameters",
    "grads-reduce-scatter": "reduce-scatter.gradients", "separate-grads-all-reduce": "all-reduce.gradients",
    "layernorm-grads-all-reduce": "all-reduce.norms", "embedding-grads-all-reduce": "all-reduce.embeddings",
    "optimizer-clip-main-grad": "all-reduce.clip", "forward-send": "send.forward", "forward-recv": "recv.forward",
    "backward-send": "send.backward", "backward-recv": "recv.backward",
}  # fmt: skip
"""Kinds of operation in the table, and as a trace names them."""

_LANES = ("compute", "parameters and gradients", *(name for name in _NAMES if name.endswith(("send", "recv"))))
_KINDS = tuple(_NAMES)
_OF_DATA = ("params-all-gather", "grads-reduce-scatter", "separate-grads-all-reduce")
_AFTER = ("layernorm-grads-all-reduce", "embedding-grads-all-reduce", "optimizer-clip-main-grad", "optimizer", "gc")
_WORK = _KINDS[:4]
NOTE = "steps were recorded apart: they are put end to end, and what passed between them is not known"

_Table = dict[str, "np.ndarray[tuple[int], np.dtype[np.generic]]"]


def read_passes(path: Path) -> list[RankTrace]:
    """Read all workers of a job; nanoseconds from the start of the first step.

    Raises:
        BadInputError: the file cannot be read, lacks a column, or holds what is not known how to order.
    """
    table = _read(path)
    if unknown := sorted(set(table["optype"].tolist()) - set(_NAMES)):
        raise BadInputError(f"holds operations of unknown kind: {plain(', '.join(unknown), 120)}", where=plain(path))
    if int(table["gmc"].max()) > int(table["stage"].max()):
        raise BadInputError("has several stages on a worker, whose order is not known", where=plain(path))
    start, end, steps = _end_to_end(table)
    place = {name: number for number, name in enumerate(_KINDS)}
    name = np.array([place[each] for each in table["optype"].tolist()], dtype=np.int64)
    workers = _Workers(table)
    return [workers.trace(int(rank), name, start, end, steps) for rank in np.unique(table["rank"])]


def columns_of(path: Path, query: str = "select * from read_parquet($path)") -> _Table:
    """What a query of a Parquet file returns, by column.

    Raises:
        BadInputError: it cannot be read, or has other columns.
    """
    import duckdb

    try:
        with duckdb.connect(config={"autoload_known_extensions": "false"}) as database:
            return database.execute(query, {"path": str(path)}).fetchnumpy()
    except duckdb.Error as error:
        raise BadInputError(f"cannot be read: {plain(error, 120)}", where=plain(path)) from error


def _read(path: Path) -> _Table:
    table = {key: np.ma.getdata(column) for key, column in columns_of(path).items()}
    if missing := [column for column in _COLUMNS if column not in table]:
        raise BadInputError(f"lacks the columns {', '.join(missing)}", where=plain(path))
    times = np.stack([table["start_ts"], table["duration"]]).astype(float)
    if not times.size or not np.isfinite(times).all() or times.min() < 0:
        raise BadInputError("holds no operations, or times that are none", where=plain(path))
    order = np.lexsort((table["seq_id"], times.sum(axis=0), times[0], table["step"], table["rank"]))
    return {key: column[order] for key, column in table.items()}


def _end_to_end(table: _Table) -> tuple[Integers, Integers, list[Step]]:
    """Start and end of each row, and the steps, each from where the one before ends."""
    begun, ended = (
        np.rint(_NANOSECONDS * column.astype(float)).astype(np.int64)
        for column in (table["start_ts"], table["start_ts"].astype(float) + table["duration"].astype(float))
    )
    labels, number = np.unique(table["step"], return_inverse=True)
    first, last = np.full(len(labels), np.iinfo(np.int64).max), np.zeros(len(labels), dtype=np.int64)
    np.minimum.at(first, number, begun)
    np.maximum.at(last, number, ended)
    bounds = np.concatenate([[0], np.cumsum(last - first)])
    moved = (bounds[:-1] - first)[number]
    steps = [Step(str(label), int(a), int(b)) for label, a, b in zip(labels, bounds[:-1], bounds[1:], strict=True)]
    return begun + moved, ended + moved, steps


class _Workers:
    """Who is who: the rank at each place of the grid of replicas and stages."""

    def __init__(self, table: _Table):
        self._table = table
        columns = (table[key].astype(int).tolist() for key in ("rank", "dp_rank", "stage"))
        self._places = {rank: (replica, stage) for rank, replica, stage in zip(*columns, strict=True)}
        self._ranks = {place: rank for rank, place in self._places.items()}
        self._last = max(stage for _, stage in self._places.values())

    def trace(self, rank: int, name: Integers, start: Integers, end: Integers, steps: list[Step]) -> RankTrace:
        """What one worker did."""
        rows = np.flatnonzero(self._table["rank"] == rank)
        names = [_KINDS[each] for each in name[rows].tolist()]
        calls = {each: self._call(rank, each) for each in _KINDS if each not in _WORK}
        said = {each: number for number, each in enumerate(calls)}
        lane = [
            _LANES.index(_LANES[1] if each in _OF_DATA else each) if each in (*_OF_DATA, *_LANES) else 0
            for each in names
        ]
        kind = [OperationKind.COMPUTE if each in _WORK else OperationKind.COMMUNICATION for each in names]
        collective = [said.get(each, -1) for each in names]
        unknown = np.full(len(rows), -1)
        end = _in_order(np.array(lane), start[rows], end[rows])
        operations = Events.of(np.stack([name[rows], lane, start[rows], end, unknown, kind, collective], axis=1))
        return RankTrace(
            rank=rank, names=tuple(_NAMES.values()), lanes=_LANES, calls=Events.of([]), operations=operations,
            spans=Events.of([]), steps=steps, caller=np.arange(len(_LANES)), executions=True,
            waits=np.array(sorted(set(_waits(operations, steps))), dtype=np.int64).reshape(-1, 2),
            collectives=list(calls.values()), notes=(NOTE,) if rank == min(self._places) else (),
        )  # fmt: skip

    def _call(self, rank: int, name: str) -> CollectiveCall:
        replica, stage = self._places[rank]
        if name in _LANES:
            ahead = 1 if name in ("forward-send", "backward-recv") else -1
            peer = self._ranks.get((replica, stage + ahead), -1)
            sends = name.endswith("send")
            ends = (rank, peer) if sends else (peer, rank)
            return CollectiveCall(Group("pipeline", "pipeline", tuple(sorted(ends))), 0, *ends)
        if name in _OF_DATA:
            return CollectiveCall(self._group("data parallel", [place for place in self._ranks if place[1] == stage]))
        if name == "embedding-grads-all-reduce":
            return CollectiveCall(self._group("embeddings", {(replica, 0), (replica, self._last)}))
        if name == "optimizer-clip-main-grad":
            return CollectiveCall(self._group("all", self._ranks))
        return CollectiveCall(Group("tensor parallel", "tensor parallel", (rank,)))

    def _group(self, name: str, places: Iterable[tuple[int, int]]) -> Group:
        return Group(name, name, tuple(sorted(self._ranks[place] for place in places)))


def _in_order(lane: Integers, start: Integers, end: Integers) -> Integers:
    """Ends, none after the next start of its lane where the two overlap by no more than times are rounded."""
    order = np.lexsort((end, start, lane))
    following = np.append(start[order][1:], np.iinfo(np.int64).max)
    rounded = (np.append(np.diff(lane[order]), 1) == 0) & (end[order] - following <= _TOLERANCE)
    kept = end.copy()
    kept[order] = np.where(rounded, np.minimum(end[order], following), end[order])
    return kept


def _waits(operations: Events, steps: list[Step]) -> Iterator[tuple[int, int]]:
    """Rows that wait, and those that they wait for, on another lane."""
    number = np.searchsorted([step.start for step in steps], operations.start, side="right") - 1
    before = np.flatnonzero(number < 0)
    for each in range(len(steps)):
        rows = np.flatnonzero(number == each)
        named = {place: rows[operations.name[rows] == place] for place in range(len(_KINDS))}
        for direction in ("forward", "backward"):
            passes = named[_KINDS.index(f"{direction}-compute")].tolist()
            sends, receives = (named[_KINDS.index(f"{direction}-{what}")].tolist() for what in ("send", "recv"))
            yield from zip(sends, passes, strict=False)
            yield from zip(passes, receives, strict=False)
            yield from _just_ended(operations, np.array(receives, dtype=np.int64), rows[operations.lane[rows] == 0])
        yield from _around_data(operations, rows)
        if each:
            last = before[np.argmax(operations.end[before])]
            firsts = np.unique(operations.lane[rows], return_index=True)[1]
            yield from ((int(row), int(last)) for row in rows[firsts])
        before = rows


def _around_data(operations: Events, rows: Integers) -> Iterator[tuple[int, int]]:
    """Gradients are reduced after the pass that had just ended; the first pass, and what follows the last, wait for
    what was gathered or reduced by then."""
    lane = operations.lane[rows]
    computing, data = rows[lane == 0], rows[lane == 1]
    later = np.isin(operations.name[computing], [_KINDS.index(name) for name in _AFTER])
    later[:1] = True
    yield from _just_ended(operations, data, computing)
    yield from _just_ended(operations, computing[later], data)


def _just_ended(operations: Events, waiting: Integers, others: Integers) -> Iterator[tuple[int, int]]:
    """Each with the last of the others that was over when it started."""
    by_end = others[np.argsort(operations.end[others], kind="stable")]
    over = np.searchsorted(operations.end[by_end], operations.start[waiting] + _TOLERANCE, side="right") - 1
    yield from ((int(row), int(by_end[last])) for row, last in zip(waiting, over, strict=True) if last >= 0)
