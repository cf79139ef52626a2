"""Kineto, the profiler of PyTorch: CUDA, ROCm and XPU, with the category names of before and after 2022.

Format: https://github.com/pytorch/kineto (libkineto/src/output_json.cpp). One file a rank.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from asap.core.errors import BadInputError, InsufficientEvidenceError
from asap.core.text import plain
from asap.traces.operations import ANY_COLLECTIVE, collective_kind, is_loading
from asap.traces.readers.json_stream import EventStream
from asap.traces.readers.rows import Numbering
from asap.traces.readers.waits import Synchronisation, exact_waits
from asap.traces.trace import NO_CORRELATION, Events, Integers, OperationKind, RankTrace, Step

US = 1000
LATEST = 2.0**52
"""Microseconds, of which twice as many do not overflow 64 bits as nanoseconds: the year 2112."""

SAID_CATEGORIES = 8
EXACT_BELOW = 2.0**43
"""Microseconds: from here on a double no longer tells nanoseconds apart."""

_CALLS = (
    *("cuda_runtime", "cuda_driver", "Runtime"),
    *("xpu_runtime", "xpu_driver", "privateuse1_runtime", "privateuse1_driver"),
)
"""Of CUDA and ROCm; of Intel's XPU and of devices that vendors add (libkineto/src/ActivityType.cpp)."""

_OPERATIONS = {
    "kernel": OperationKind.COMPUTE,
    "Kernel": OperationKind.COMPUTE,
    "gpu_memcpy": OperationKind.COPY,
    "Memcpy": OperationKind.COPY,
    "gpu_memset": OperationKind.MEMSET,
    "Memset": OperationKind.MEMSET,
}
_SPANS = ("cpu_op", "Operator", "user_annotation")
_CALL, _SPAN, _OPERATION, _SYNCHRONISATION = range(4)
_SORTS = {
    **dict.fromkeys(_CALLS, _CALL),
    **dict.fromkeys(_SPANS, _SPAN),
    **dict.fromkeys(_OPERATIONS, _OPERATION),
    "cuda_sync": _SYNCHRONISATION,
}
"""Of the many spans only those count that mark steps, loading and backward passes."""

_STEP = re.compile(r"ProfilerStep#(\d+)")
_BACKWARD = re.compile(r"autograd::engine::|\w+Backward\d*$")
_RANK_IN_NAME = re.compile(r"(?:rank|worker|proc)[_-]?(\d+)", re.IGNORECASE)

_Lane = tuple[str, int | str | None, int | str | None]
"""``thread`` with its process, or ``stream`` with its device."""


class _Arguments(msgspec.Struct, gc=False):
    correlation: int = NO_CORRELATION
    stream: int | str | None = None
    device: int | str | None = None
    wait_on_stream: int | None = None
    wait_on_cuda_event_record_corr_id: int | None = None
    collective: str = msgspec.field(default="", name="Collective name")


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str | None = ""
    name: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float = 0.0
    dur: float = 0.0
    args: _Arguments | None = None


_NO_ARGUMENTS = _Arguments()


class _Exact(msgspec.Struct, gc=False):
    ts: Decimal = Decimal(0)
    dur: Decimal = Decimal(0)


def read_kineto(path: Path) -> RankTrace:
    """Read the trace of one rank; times are absolute nanoseconds.

    Raises:
        BadInputError: the file cannot be read, is cut off or is not a trace.
        InsufficientEvidenceError: no GPU did anything in it.
    """
    stream = EventStream(path, _Event)
    builder = _Builder()
    try:
        for events, text in stream.slices():
            builder.add(events, text)
    except OverflowError as error:
        raise BadInputError("has an event with a time or a correlation that is too large", where=plain(path)) from error
    return builder.build(path, stream.fields)


class _Builder:
    def __init__(self) -> None:
        self.names: Numbering[str] = Numbering()
        self.lanes: Numbering[_Lane] = Numbering()
        self.calls: list[Integers] = []
        self.operations: list[Integers] = []
        self.spans: list[Integers] = []
        self.synchronisations: list[Synchronisation] = []
        self.categories: set[str] = set()

    def add(self, events: list[_Event], text: bytes) -> None:
        """The events of a slice, sort by sort."""
        sorts = [_SORTS.get(event.cat or "") if event.ph == "X" else None for event in events]
        rows = [
            row
            for row, sort in enumerate(sorts)
            if sort is not None and (sort != _SPAN or _tells_something(events[row].name))
        ]
        wanted, sort = [events[row] for row in rows], np.array([sorts[row] for row in rows], dtype=np.int64)
        start, end = _times(wanted, rows, text)
        if not self.operations:
            self.categories.update(event.cat or "" for event in events if event.ph == "X")
        for table, which in ((self.calls, _CALL), (self.spans, _SPAN), (self.operations, _OPERATION)):
            if len(mine := np.flatnonzero(sort == which)):
                found = [wanted[row] for row in mine.tolist()]
                columns = self._operations(found) if which == _OPERATION else self._on_threads(found)
                table.append(np.stack([columns[0], columns[1], start[mine], end[mine], *columns[2:]], axis=1))
        for row in np.flatnonzero(sort == _SYNCHRONISATION).tolist():
            self._add_synchronisation(wanted[row].args or _NO_ARGUMENTS)

    def _on_threads(self, events: Sequence[_Event]) -> Sequence[Integers]:
        """Names, lanes, correlations and kinds of calls or spans."""
        names, lanes = self.names, self.lanes
        return (
            np.array([names[event.name] for event in events]),
            np.array([lanes["thread", event.pid, event.tid] for event in events]),
            _correlations(events),
            np.zeros(len(events), dtype=np.int64),
        )

    def _operations(self, events: Sequence[_Event]) -> Sequence[Integers]:
        """Names, lanes, correlations and kinds of what a device ran."""
        names, lanes = self.names, self.lanes
        kinds = np.array([_does(event.cat or "", event.name) for event in events], dtype=np.int64)
        named = np.array([names[event.name] for event in events])
        for row in np.flatnonzero(kinds == OperationKind.COMMUNICATION).tolist():
            named[row] = names[_collective_name(events[row])]
        return named, np.array([lanes[_stream(event)] for event in events]), _correlations(events), kinds

    def _add_synchronisation(self, arguments: _Arguments) -> None:
        recorded = arguments.wait_on_cuda_event_record_corr_id
        if recorded is not None and recorded >= 0 and arguments.stream not in (None, -1):
            streams = (arguments.stream, arguments.wait_on_stream)
            waiting, awaited = (self.lanes["stream", arguments.device, stream] for stream in streams)
            self.synchronisations.append(Synchronisation(waiting, awaited, recorded, arguments.correlation))

    def build(self, path: Path, fields: dict[str, Any]) -> RankTrace:
        if not self.operations:
            found = ", ".join(plain(category, 30) for category in sorted(self.categories - {""})[:SAID_CATEGORIES])
            raise InsufficientEvidenceError(
                "holds no GPU activity, so there is nothing to replay" + (f"; its events are {found}" if found else ""),
                where=plain(path),
                hint="record with ProfilerActivity.CUDA; a CPU or TPU run is profiled otherwise",
            )
        names = list(self.names)
        calls, operations, spans = (Events.joined(rows) for rows in (self.calls, self.operations, self.spans))
        steps, step_lane = _steps(spans, names)
        rank, world_size = _rank(path, fields)
        return RankTrace(
            rank=rank,
            names=names,
            lanes=[_label(*lane) for lane in self.lanes],
            calls=calls,
            operations=operations,
            spans=spans,
            steps=steps,
            step_lane=step_lane,
            caller=_callers(spans, names, len(self.lanes), step_lane),
            waits=exact_waits(self.synchronisations, operations),
            world_size=world_size,
            device=_device(fields),
            notes=_notes(fields, calls, operations, steps),
        )


@lru_cache(maxsize=1 << 16)
def _does(category: str, name: str) -> OperationKind:
    kind = _OPERATIONS[category]
    return OperationKind.COMMUNICATION if kind is OperationKind.COMPUTE and collective_kind(name) else kind


def _collective_name(event: _Event) -> str:
    """NCCL's generic kernel says in its arguments what it does."""
    stated = event.args.collective if event.args and collective_kind(event.name) == ANY_COLLECTIVE else ""
    return stated or event.name


def _stream(event: _Event) -> _Lane:
    arguments = event.args or _NO_ARGUMENTS
    device = event.pid if arguments.device is None else arguments.device
    return "stream", device, event.tid if arguments.stream is None else arguments.stream


def _correlations(events: Sequence[_Event]) -> Integers:
    return np.array([event.args.correlation if event.args else NO_CORRELATION for event in events], dtype=np.int64)


@lru_cache(maxsize=1 << 16)
def _tells_something(name: str) -> bool:
    return bool(_STEP.fullmatch(name) or _BACKWARD.match(name) or is_loading(name))


def _times(events: Sequence[_Event], rows: Sequence[int], text: bytes) -> tuple[Integers, Integers]:
    start = np.array([event.ts for event in events])
    duration = np.array([event.dur for event in events])
    if np.any(np.abs(start) >= LATEST) or np.any(np.abs(duration) >= LATEST):
        raise OverflowError
    if len(events) and start.max() >= EXACT_BELOW and np.any(start % 1):
        every = msgspec.json.decode(text, type=list[_Exact])
        exact = [every[row] for row in rows]
        starts = np.array([round(event.ts * US) for event in exact])
        return starts, starts + np.array([round(event.dur * US) for event in exact])
    starts = _nanoseconds(start)
    return starts, starts + _nanoseconds(np.maximum(duration, 0))


def _nanoseconds(microseconds: NDArray[np.float64]) -> Integers:
    """Whole microseconds first: a product of epoch microseconds and a thousand has no room for them in a double."""
    whole = np.floor(microseconds)
    return whole.astype(np.int64) * US + np.rint((microseconds - whole) * US).astype(np.int64)


def _steps(spans: Events, names: list[str]) -> tuple[list[Step], int]:
    marks = {number: found.group(1) for number, name in enumerate(names) if (found := _STEP.fullmatch(name))}
    rows = np.flatnonzero(np.isin(spans.name, list(marks)))
    steps = [Step(marks[int(spans.name[row])], int(spans.start[row]), int(spans.end[row])) for row in rows]
    return steps, int(spans.lane[rows[0]]) if len(rows) else NO_CORRELATION


def _callers(spans: Events, names: list[str], lanes: int, step_lane: int) -> Integers:
    """Threads that run backward passes are in line with the thread of the training loop, which waits for them."""
    caller = np.arange(lanes)
    if step_lane < 0:
        return caller
    backward = [number for number, name in enumerate(names) if _BACKWARD.match(name)]
    caller[np.unique(spans.lane[np.isin(spans.name, backward)])] = step_lane
    return caller


def _rank(path: Path, fields: dict[str, Any]) -> tuple[int, int | None]:
    """From the header; else from the name of the file; else rank 0."""
    distributed = fields.get("distributedInfo")
    if isinstance(distributed, dict) and isinstance(rank := distributed.get("rank"), int):
        size = distributed.get("world_size")
        return rank, size if isinstance(size, int) else None
    found = _RANK_IN_NAME.search(path.name)
    return int(found.group(1)) if found else 0, None


def _device(fields: dict[str, Any]) -> str | None:
    devices = fields.get("deviceProperties")
    if isinstance(devices, list) and devices and isinstance(devices[0], dict):
        return plain(devices[0].get("name", ""), 60) or None
    return None


def _label(what: str, first: int | str | None, second: int | str | None) -> str:
    name = str(second).removeprefix("stream ")
    return f"{what} {name}" if what == "thread" else f"device {first} stream {name}"


def _notes(fields: dict[str, Any], calls: Events, operations: Events, steps: list[Step]) -> tuple[str, ...]:
    notes = []
    if not steps:
        notes.append("no ProfilerStep marks: the whole trace is taken for one step")
    if unlaunched := int((~np.isin(operations.correlation, calls.correlation)).sum()):
        notes.append(f"{unlaunched} GPU operations have no launch in the trace: they were launched before it began")
    launches = np.unique(operations.correlation[operations.correlation >= 0], return_counts=True)[1]
    if len(launches) and launches.max() > 2:
        notes.append(f"{int((launches > 2).sum())} launches start several operations at once (CUDA graphs)")
    return tuple(notes)
