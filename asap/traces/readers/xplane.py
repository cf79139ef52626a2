"""XPlane profiles of JAX: TPU cores, GPU streams with their launches, virtual devices of a CPU. Each is a rank."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from asap.core.errors import InsufficientEvidenceError
from asap.core.text import plain
from asap.profiles.xplane.planes import Line, Plane, read_planes
from asap.traces.operations import collective_kind
from asap.traces.readers.cpu import read_devices
from asap.traces.readers.rows import Numbering
from asap.traces.readers.tpu import read_core
from asap.traces.trace import NO_CORRELATION, Events, Integers, OperationKind, RankTrace

_DEVICE = re.compile(r"/device:(TPU|GPU):(\d+)")
_STREAM = re.compile(r"Stream #(\d+)")
_HOST = "/host:CPU"
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
    hosts = [plane for plane in planes if plane.name == _HOST]
    ranks = []
    for plane in planes:
        if found := _DEVICE.fullmatch(plane.name):
            number = int(found.group(2))
            rank = read_core(plane, number) if found.group(1) == "TPU" else _read_gpu(plane, hosts, number)
            ranks += [rank] if rank else []
    ranks = ranks or read_devices(planes)
    if not ranks:
        hint = "record while a compiled program runs"
        raise InsufficientEvidenceError("holds no device activity", where=plain(path), hint=hint)
    return ranks


def _read_gpu(plane: Plane, hosts: Sequence[Plane], number: int) -> RankTrace | None:
    names: Numbering[str] = Numbering()
    lanes: Numbering[str] = Numbering()
    operations = [_rows(plane, line, names, lanes) for line in plane.lines if _STREAM.match(line.name)]
    if not sum(map(len, operations)):
        return None
    launched = Events.of(np.concatenate(operations))
    wanted = launched.correlation[launched.correlation >= 0]
    calls = [
        rows[np.isin(rows[:, 4], wanted)]
        for host in hosts
        for line in host.lines
        if len(rows := _rows(host, line, names, lanes))
    ]
    return RankTrace(
        rank=number,
        names=list(names),
        lanes=list(lanes),
        calls=Events.of(np.concatenate(calls) if calls else []),
        operations=launched,
        spans=Events.of([]),
        steps=[],
        caller=np.arange(len(lanes)),
        notes=("no executions are told apart: the whole profile is taken for one step",),
    )


def _rows(plane: Plane, line: Line, names: Numbering[str], lanes: Numbering[str]) -> Integers:
    """Name, lane, start, end, correlation and kind of each event."""
    events = line.events((_CORRELATION,))
    keys, place = np.unique(events.metadata, return_inverse=True)
    labels = [plane.names.get(key, "") for key in keys.tolist()]
    found = _STREAM.match(line.name)
    lane = lanes[f"stream {found.group(1)}" if found else f"thread {line.name}"] if labels else 0
    correlation = events.stats.get(_CORRELATION)
    columns = (
        np.array([names[label] for label in labels], dtype=np.int64)[place],
        np.full(len(events), lane),
        events.start_ns,
        events.end_ns,
        np.where(correlation.known, correlation.value, NO_CORRELATION)
        if correlation
        else np.full(len(events), NO_CORRELATION),
        np.array([_kind(label) for label in labels], dtype=np.int64)[place],
    )
    return np.stack(columns, axis=1)


def _kind(name: str) -> OperationKind:
    if collective_kind(name):
        return OperationKind.COMMUNICATION
    if _MEMSET.search(name):
        return OperationKind.MEMSET
    return OperationKind.COPY if _COPY.search(name) else OperationKind.COMPUTE
