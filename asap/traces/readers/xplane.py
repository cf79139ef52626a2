"""XPlane profiles of JAX: TPU cores, GPU streams with their launches, virtual devices of a CPU. Each is a rank."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from asap.core.errors import InsufficientEvidenceError
from asap.core.text import plain
from asap.profiles.cpu import CpuWork, Mark, read_cpu
from asap.profiles.hlo.program import compiled
from asap.profiles.totals import HOST
from asap.profiles.xplane.columns import distinct
from asap.profiles.xplane.planes import PS_PER_NS, Line, Plane, read_planes
from asap.profiles.xplane.wire import Place, fields
from asap.traces.readers.tpu import leaves, read_core
from asap.traces.trace import (
    NO_CORRELATION,
    Events,
    Integers,
    Numbering,
    OperationKind,
    RankTrace,
    Step,
    collective_kind,
)

_NOTE = "virtual devices of a CPU: operations of all of them share its cores"


def read_devices(planes: Sequence[Plane]) -> list[RankTrace]:
    """The virtual devices of one host; times are nanoseconds after its first event."""
    events = read_cpu(planes)
    devices = sorted({int(device) for part in events.work for device in np.unique(part.device)})
    marks = sorted(events.marks, key=lambda mark: mark.start)
    return [_device([part.of_device(device) for part in events.work], device, marks) for device in devices]


def _device(work: Sequence[CpuWork], number: int, marks: Sequence[Mark]) -> RankTrace:
    names: Numbering[str] = Numbering()
    rows, runs = [], []
    for part in work:
        kept = leaves(part.start, part.end)
        labels = [str(part.name[row]) for row in kept.tolist()]
        kinds = [OperationKind.COMMUNICATION if collective_kind(name) else OperationKind.COMPUTE for name in labels]
        columns = (
            np.array([names[label] for label in labels], dtype=np.int64), np.zeros(len(kept), dtype=np.int64),
            part.start[kept] // PS_PER_NS, part.end[kept] // PS_PER_NS, np.full(len(kept), NO_CORRELATION),
            np.array(kinds, dtype=np.int64),
        )  # fmt: skip
        rows.append(np.stack(columns, axis=1))
        runs.append(part.run[kept])
    operations = np.concatenate(rows)
    return RankTrace(
        rank=number, names=list(names), lanes=[f"device {number}"], calls=Events.of([]), spans=Events.of([]),
        operations=Events.of(operations), steps=_steps(_executions(operations, np.concatenate(runs)), marks),
        caller=np.arange(1), executions=True, groups_unknown=True, notes=(_NOTE,) if number == 0 else (),
    )  # fmt: skip


def _executions(operations: Integers, run: Integers) -> list[Step]:
    """Each run of a module, from its first operation to its last."""
    each = [operations[run == number] for number in np.unique(run).tolist()]
    spans = sorted((int(rows[:, 2].min()), int(rows[:, 3].max())) for rows in each)
    return [Step(str(number), start, end) for number, (start, end) in enumerate(spans)]


def _steps(executions: list[Step], marks: Sequence[Mark]) -> list[Step]:
    """The executions that began between two marks are one step.

    Where steps would have different numbers of them, the device ran behind its host, and each execution counts.
    """
    starts = [mark.start // PS_PER_NS for mark in marks]
    number = np.searchsorted(starts, [execution.start for execution in executions], side="right") - 1
    found = [[executions[row] for row in np.flatnonzero(number == mark)] for mark in range(len(marks))]
    if len({len(members) for members in found}) != 1 or not found[0]:
        return executions
    return [
        Step(str(mark.number), members[0].start, max(member.end for member in members))
        for mark, members in zip(marks, found, strict=True)
    ]


_DEVICE = re.compile(r"/device:(TPU|GPU):(\d+)")
_STREAM = re.compile(r"Stream #(\d+)")
_GLOBAL_CORE = 6
_CORRELATION = "correlation_id"
_COPY = re.compile(r"memcpy|copybuffer", re.IGNORECASE)
_MEMSET = re.compile(r"memset|fillbuffer", re.IGNORECASE)


def read_xplane(path: Path) -> list[RankTrace]:
    """Read the devices that one host recorded; times are absolute nanoseconds.

    Raises:
        ProfileError: the file is damaged.
        InsufficientEvidenceError: no device did anything in it.
    """
    planes = list(read_planes(path, "/"))
    hosts = [plane for plane in planes if plane.name == HOST]
    cores = _cores([plane for plane in planes if _DEVICE.fullmatch(plane.name)])
    devices = max((program.devices for program in compiled(planes)), key=len, default=()) if cores else ()
    ranks = []
    for plane in planes:
        if found := _DEVICE.fullmatch(plane.name):
            number, is_core = cores.get(plane.name, int(found.group(2))), found.group(1) == "TPU"
            rank = read_core(plane, number, devices) if is_core else _read_gpu(plane, hosts, number)
            ranks += [rank] if rank else []
    ranks = ranks or read_devices(planes)
    if not ranks:
        hint = "record while a compiled program runs"
        raise InsufficientEvidenceError("holds no device activity", where=plain(path), hint=hint)
    return ranks


def _cores(planes: Sequence[Plane]) -> dict[str, int]:
    """The number of each core among all of the job, where the recording says it: ``CoreDetails`` of openxla/xprof."""
    found = dict[str, int]()
    for plane in planes:
        if isinstance(details := plane.stats.get("core_details"), bytes):
            with plane.reading():
                parts = fields(details, Place(0, len(details)))
                found[plane.name] = next((value for number, _, value, _ in parts if number == _GLOBAL_CORE), 0)
    return found if len(set(found.values())) == len(found) else {}


def _read_gpu(plane: Plane, hosts: Sequence[Plane], number: int) -> RankTrace | None:
    names: Numbering[str] = Numbering()
    lanes: Numbering[str] = Numbering()
    operations = [_rows(plane, line, names, lanes) for line in plane.lines if _STREAM.match(line.name)]
    if not sum(map(len, operations)):
        return None
    launched = Events.of(np.concatenate(operations))
    wanted = launched.correlation[launched.correlation >= 0]
    parts = [_rows(host, line, names, lanes) for host in hosts for line in host.lines]
    did = np.concatenate([np.empty((0, 6), dtype=np.int64), *parts])
    launches = did[np.isin(did[:, 4], wanted)]
    waits = did[np.isin(did[:, 0], [key for key, name in enumerate(names) if name.endswith("block_until_ready")])]
    if len(threads := distinct(launches[:, 1])) == 1:
        waits[:, 1] = threads
        launches = np.concatenate([launches, waits])
    return RankTrace(
        rank=number, names=list(names), lanes=list(lanes), calls=Events.of(launches),
        operations=launched, spans=Events.of([]), steps=[], caller=np.arange(len(lanes)),
        notes=("no executions are told apart: the whole profile is taken for one step",),
    )  # fmt: skip


def _rows(plane: Plane, line: Line, names: Numbering[str], lanes: Numbering[str]) -> Integers:
    """Name, lane, start, end, correlation and kind of each event."""
    events = line.events((_CORRELATION,))
    keys, place = np.unique(events.metadata, return_inverse=True)
    labels = [plane.names.get(key, "") for key in keys.tolist()]
    found = _STREAM.match(line.name)
    lane = lanes[f"stream {found.group(1)}" if found else f"thread {line.name}"] if labels else 0
    correlation, nowhere = events.stats.get(_CORRELATION), np.full(len(events), NO_CORRELATION)
    columns = (
        np.array([names[label] for label in labels], dtype=np.int64)[place], np.full(len(events), lane),
        events.start_ns, events.end_ns,
        np.where(correlation.known, correlation.value, NO_CORRELATION) if correlation else nowhere,
        np.array([_kind(label) for label in labels], dtype=np.int64)[place],
    )  # fmt: skip
    return np.stack(columns, axis=1)


def _kind(name: str) -> OperationKind:
    if collective_kind(name):
        return OperationKind.COMMUNICATION
    if _MEMSET.search(name):
        return OperationKind.MEMSET
    return OperationKind.COPY if _COPY.search(name) else OperationKind.COMPUTE
