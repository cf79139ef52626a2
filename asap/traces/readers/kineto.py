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

from asap.core.errors import BadInputError, InsufficientEvidenceError
from asap.core.text import plain
from asap.traces.readers.json_stream import EventStream
from asap.traces.readers.process_groups import CollectiveArguments, ProcessGroups, Said, Synchronisation, exact_waits
from asap.traces.trace import (
    NO_COLLECTIVE,
    NO_CORRELATION,
    Events,
    Integers,
    Numbering,
    OperationKind,
    RankTrace,
    Step,
    collective_kind,
    is_loading,
)

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
    **dict.fromkeys(("kernel", "Kernel"), OperationKind.COMPUTE),
    **dict.fromkeys(("gpu_memcpy", "Memcpy"), OperationKind.COPY),
    **dict.fromkeys(("gpu_memset", "Memset"), OperationKind.MEMSET),
}
_SPANS = ("cpu_op", "Operator", "user_annotation")
_CALL, _SPAN, _OPERATION, _SYNCHRONISATION = range(4)
_SORTS = {
    **dict.fromkeys(_CALLS, _CALL), **dict.fromkeys(_SPANS, _SPAN), **dict.fromkeys(_OPERATIONS, _OPERATION),
    "cuda_sync": _SYNCHRONISATION,
}  # fmt: skip
"""Of the many spans only those count that mark steps, loading and backward passes."""

_UNUSED = (
    *((category, b"") for category in (b"python_function", b"gpu_user_annotation", b"overhead")),
    *((category, b"aten::") for category in (b"cpu_op", b"Operator")),
)
"""Categories with the beginnings of names of which no event is read: most events of a recording."""

_STEP = re.compile(r"ProfilerStep#(\d+)")
_BACKWARD = re.compile(r"autograd::engine::|\w+Backward\d*$")
_RANK_IN_NAME = re.compile(r"(?:rank|worker|proc)[_-]?(\d+)", re.IGNORECASE)

_Lane = tuple[str, int | str | None, int | str | None]
"""``thread`` with its process, or ``stream`` with its device."""


class _Arguments(CollectiveArguments, gc=False):
    correlation: int = NO_CORRELATION
    external: Any = msgspec.field(default=None, name="External id")
    stream: int | str | None = None
    device: int | str | None = None
    wait_on_stream: int | None = None
    wait_on_cuda_event_record_corr_id: int | None = None


def linked(arguments: Any) -> int:
    """What a launch shares with what it launched: older recordings of ROCm have an external ID alone."""
    if arguments is None or arguments.correlation != NO_CORRELATION:
        return arguments.correlation if arguments else NO_CORRELATION
    return arguments.external if isinstance(arguments.external, int) else NO_CORRELATION


class KinetoEvent(msgspec.Struct, gc=False):
    """An event without its arguments, of which each reader takes its own; times in microseconds."""

    ph: str = ""
    cat: str | None = ""
    name: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float = 0.0
    dur: float = 0.0


class _Event(KinetoEvent, gc=False):
    args: _Arguments | None = None


_NO_ARGUMENTS = _Arguments()


class _ExactEvent(_Event, gc=False):
    """With times that a double does not hold to the nanosecond."""

    ts: Decimal = Decimal(0)  # pyright: ignore[reportIncompatibleVariableOverride]
    dur: Decimal = Decimal(0)  # pyright: ignore[reportIncompatibleVariableOverride]


def read_kineto(path: Path) -> RankTrace:
    """Read the trace of one rank; times are absolute nanoseconds.

    Raises:
        BadInputError: the file cannot be read, is cut off or is not a trace.
        InsufficientEvidenceError: no GPU did anything in it.
    """
    stream = EventStream(path, _Event, _UNUSED)
    builder = _Builder()
    try:
        for events, text in stream.slices():
            builder.add(msgspec.json.decode(text, type=list[_ExactEvent]) if _are_inexact(events) else events)
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
        self.collectives: Numbering[Said] = Numbering()
        self.categories: set[str] = set()

    def add(self, events: Sequence[_Event]) -> None:
        """The events of a slice, sort by sort."""
        sorts: tuple[list[_Event], ...] = ([], [], [], [])
        for event in events:
            if event.ph == "X" and (sort := _SORTS.get(event.cat or "")) is not None:
                sorts[sort].append(event)
        calls, spans, operations, synchronisations = sorts
        spans = [span for span in spans if _tells_something(span.name)]
        if not self.operations:
            self.categories |= {event.cat or "" for event in events if event.ph == "X"}
        names, lanes = self.names, self.lanes
        for table, found in ((self.calls, calls), (self.spans, spans)):
            if found:
                rows = _rows(found)
                rows[:, 0] = [names[event.name] for event in found]
                rows[:, 1] = [lanes["thread", event.pid, event.tid] for event in found]
                table.append(rows)
        if operations:
            rows = _rows(operations)
            titles = [_operation_name(event) for event in operations]
            rows[:, 0] = [names[title] for title in titles]
            rows[:, 1] = [lanes[_stream(event)] for event in operations]
            rows[:, 5] = [_does(event.cat or "", title) for event, title in zip(operations, titles, strict=True)]
            rows[:, 6] = [self._collective(event.args) for event in operations]
            self.operations.append(rows)
        for event in synchronisations:
            self._add_synchronisation(event.args or _NO_ARGUMENTS)

    def _collective(self, arguments: _Arguments | None) -> int:
        said = arguments.said if arguments is not None else None
        return NO_COLLECTIVE if said is None else self.collectives[said]

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
                hint="record the device too: torch.profiler.profile(activities=[ProfilerActivity.CUDA, …])",
            )
        names = list(self.names)
        calls, operations, spans = (Events.joined(rows) for rows in (self.calls, self.operations, self.spans))
        steps, step_lane = _steps(spans, names)
        rank, world_size = rank_of(path, fields)
        groups = ProcessGroups.of(fields.get("distributedInfo"))
        return RankTrace(
            rank=rank, names=names, lanes=[_label(*lane) for lane in self.lanes], calls=calls, operations=operations,
            spans=spans, steps=steps, step_lane=step_lane, world_size=world_size, device=_device(fields),
            caller=_callers(spans, calls, names, len(self.lanes), step_lane),
            waits=exact_waits(self.synchronisations, operations),
            collectives=[groups.call(rank, said) for said in self.collectives],
            notes=_notes(fields, calls, operations, steps),
        )  # fmt: skip


def _rows(events: Sequence[_Event]) -> Integers:
    """As :meth:`Events.of` takes them, with start, end and correlation."""
    start = _nanoseconds([event.ts for event in events])
    rows = np.full((len(events), 7), NO_COLLECTIVE, dtype=np.int64)
    rows[:, 5] = 0
    rows[:, 2] = start
    rows[:, 3] = start + np.maximum(_nanoseconds([event.dur for event in events]), 0)
    rows[:, 4] = [event.args.correlation if event.args else NO_CORRELATION for event in events]
    for row in np.flatnonzero(rows[:, 4] == NO_CORRELATION).tolist():
        rows[row, 4] = linked(events[row].args)
    return rows


@lru_cache(maxsize=1 << 16)
def _does(category: str, name: str) -> OperationKind:
    kind = _OPERATIONS[category]
    return OperationKind.COMMUNICATION if kind is OperationKind.COMPUTE and collective_kind(name) else kind


def _operation_name(event: _Event) -> str:
    """A kernel by its name, unless its arguments say better what it does.

    NCCL exchanges all-to-all by send and receive, its generic kernel does anything, and so does one of another library.
    """
    stated = event.args.kind if event.args else None
    return stated if stated and stated != collective_kind(event.name) else event.name


def _stream(event: _Event) -> _Lane:
    arguments = event.args or _NO_ARGUMENTS
    device = event.pid if arguments.device is None else arguments.device
    return "stream", device, event.tid if arguments.stream is None else arguments.stream


@lru_cache(maxsize=1 << 16)
def _tells_something(name: str) -> bool:
    return bool(_STEP.fullmatch(name) or _BACKWARD.match(name) or is_loading(name))


def _are_inexact(events: Sequence[_Event]) -> bool:
    """Whether a double does not hold their times to the nanosecond."""
    start = np.array([event.ts for event in events])
    late = start[start >= EXACT_BELOW]
    return bool(np.any(late != np.floor(late)))


def _nanoseconds(microseconds: Sequence[float | Decimal]) -> Integers:
    """Whole microseconds first: a product of epoch microseconds and a thousand has no room for them in a double."""
    if isinstance(microseconds[0], Decimal):
        return np.array([round(time * US) for time in microseconds])
    times = np.array(microseconds)
    if np.any(np.abs(times) >= LATEST):
        raise OverflowError
    whole = np.floor(times)
    return whole.astype(np.int64) * US + np.rint((times - whole) * US).astype(np.int64)


def _steps(spans: Events, names: list[str]) -> tuple[list[Step], int]:
    marks = {number: found.group(1) for number, name in enumerate(names) if (found := _STEP.fullmatch(name))}
    rows = np.flatnonzero(np.isin(spans.name, list(marks)))
    steps = [Step(marks[int(spans.name[row])], int(spans.start[row]), int(spans.end[row])) for row in rows]
    return steps, int(spans.lane[rows[0]]) if len(rows) else NO_CORRELATION


def _callers(spans: Events, calls: Events, names: list[str], lanes: int, step_lane: int) -> Integers:
    """Threads that run backward passes are in line with that of the loop, which marks steps or is the busiest other."""
    caller = np.arange(lanes)
    backward = [number for number, name in enumerate(names) if _BACKWARD.match(name)]
    running = np.unique(spans.lane[np.isin(spans.name, backward)])
    others = calls.lane[~np.isin(calls.lane, running)]
    if step_lane >= 0 or len(others):
        caller[running] = step_lane if step_lane >= 0 else np.bincount(others).argmax()
    return caller


def rank_of(path: Path, fields: dict[str, Any]) -> tuple[int, int | None]:
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
        graphs = int((launches > 2).sum())
        order = "their order within the graph is that of the streams, not of the host"
        notes.append(f"{graphs} launches start several operations at once (CUDA graphs): {order}")
    return tuple(notes)
