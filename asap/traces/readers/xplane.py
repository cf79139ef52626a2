"""XPlane profiles of JAX: TPU cores, and GPU streams with their launches. Each device is a rank."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from asap.core.errors import InsufficientEvidenceError
from asap.core.text import plain
from asap.traces.operations import collective_kind
from asap.traces.readers.rows import Numbering
from asap.traces.readers.tpu import read_core
from asap.traces.readers.xspace import Line, Plane, read_planes
from asap.traces.trace import Events, OperationKind, RankTrace

_DEVICE = re.compile(r"/device:(TPU|GPU):(\d+)")
_STREAM = re.compile(r"Stream #(\d+)")
_HOST = "/host:CPU"
_COPY = re.compile(r"memcpy|copybuffer", re.IGNORECASE)
_MEMSET = re.compile(r"memset|fillbuffer", re.IGNORECASE)


def read_xplane(path: Path) -> list[RankTrace]:
    """Read the devices that one host recorded; times are absolute nanoseconds.

    Raises:
        ProfileError: the file is damaged.
        InsufficientEvidenceError: no TPU or GPU did anything in it.
    """
    planes = list(read_planes(path, "/"))
    hosts = [plane for plane in planes if plane.name == _HOST]
    ranks = []
    for plane in planes:
        if found := _DEVICE.fullmatch(plane.name):
            number = int(found.group(2))
            rank = read_core(plane, number) if found.group(1) == "TPU" else _read_gpu(plane, hosts, number)
            ranks += [rank] if rank else []
    if not ranks:
        hint = "a CPU profile has no device to replay; record on a TPU or GPU"
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


def _rows(plane: Plane, line: Line, names: Numbering[str], lanes: Numbering[str]) -> "np.ndarray":
    """Name, lane, start, end, correlation and kind of each event."""
    labels = {key: plane.names.get(key, "") for key in np.unique(line.metadata).tolist()}
    number = {key: names[label] for key, label in labels.items()}
    kind = {key: _kind(label) for key, label in labels.items()}
    found = _STREAM.match(line.name)
    lane = lanes[f"stream {found.group(1)}" if found else f"thread {line.name}"] if labels else 0
    metadata = line.metadata.tolist()
    columns = (
        np.array([number[key] for key in metadata], dtype=np.int64),
        np.full(len(metadata), lane),
        line.start,
        line.end,
        line.correlation,
        np.array([kind[key] for key in metadata], dtype=np.int64),
    )
    return np.stack(columns, axis=1)


def _kind(name: str) -> OperationKind:
    if collective_kind(name):
        return OperationKind.COMMUNICATION
    if _MEMSET.search(name):
        return OperationKind.MEMSET
    return OperationKind.COPY if _COPY.search(name) else OperationKind.COMPUTE
