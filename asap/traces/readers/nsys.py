"""Nsight Systems, exported to SQLite: ``nsys export --type sqlite FILE.nsys-rep``. Each device of a process is a rank.

Tables: https://docs.nvidia.com/nsight-systems/UserGuide/index.html (SQLite Schema Reference). A table is there only if
something was recorded for it, and columns have been added over the years: what is read here has been there since 2019.
"""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from asap.core.errors import BadInputError, InsufficientEvidenceError
from asap.core.text import plain
from asap.traces.operations import collective_kind, is_loading
from asap.traces.readers.rows import Numbering
from asap.traces.trace import Events, OperationKind, RankTrace, Step

_STEP = re.compile(r"(?:train(?:ing)?[ _]?)?(?:step|iter(?:ation)?)[ _#:]*(\d+)", re.IGNORECASE)
_COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
"""``CUpti_ActivityMemcpyKind``, in the words of Kineto."""

_KERNELS = """
    SELECT k.deviceId, k.globalPid, k.streamId, k.start, k.end, k.correlationId, s.value, -1
    FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS s ON s.id = k.demangledName"""
_MEMCPY = (
    "SELECT deviceId, globalPid, streamId, start, end, correlationId, '', copyKind FROM CUPTI_ACTIVITY_KIND_MEMCPY"
)
_MEMSET = "SELECT deviceId, globalPid, streamId, start, end, correlationId, 'Memset', 0 FROM CUPTI_ACTIVITY_KIND_MEMSET"
_OPERATIONS = {
    "CUPTI_ACTIVITY_KIND_KERNEL": _KERNELS,
    "CUPTI_ACTIVITY_KIND_MEMCPY": _MEMCPY,
    "CUPTI_ACTIVITY_KIND_MEMSET": _MEMSET,
}
_CALLS = """
    SELECT r.globalTid, r.start, r.end, r.correlationId, s.value
    FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r JOIN StringIds AS s ON s.id = r.nameId"""
_RANGES = """
    SELECT n.globalTid, n.start, n.end, -1, coalesce(n.text, s.value)
    FROM NVTX_EVENTS AS n LEFT JOIN StringIds AS s ON s.id = n.textId WHERE n.end IS NOT NULL"""
_DEVICES = "SELECT id, name FROM TARGET_INFO_GPU"
_PROCESS_BITS = 24
"""``globalTid`` holds the process above its last 24 bits, and ``globalPid`` has zeros in them."""

_Row = tuple[Any, ...]


def read_nsys(path: Path) -> list[RankTrace]:
    """Read what each process recorded of each device; times are nanoseconds of the session.

    Raises:
        BadInputError: the file is damaged or no export of Nsight Systems.
        InsufficientEvidenceError: no device did anything in it.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            operations = [r for table, query in _OPERATIONS.items() if table in tables for r in database.execute(query)]
            calls = list(database.execute(_CALLS)) if "CUPTI_ACTIVITY_KIND_RUNTIME" in tables else []
            ranges = list(database.execute(_RANGES)) if "NVTX_EVENTS" in tables else []
            devices = dict(database.execute(_DEVICES)) if "TARGET_INFO_GPU" in tables else {}
    except sqlite3.Error as error:
        raise BadInputError(f"cannot be read: {plain(error, 120)}", where=plain(path)) from error
    if not operations:
        hint = "record with nsys profile --trace=cuda,nvtx, then export again"
        raise InsufficientEvidenceError("holds no GPU activity", where=plain(path), hint=hint)
    owners = sorted({(row[1], row[0]) for row in operations}, key=str)
    return [
        _rank(
            number,
            [row for row in operations if (row[1], row[0]) == (process, device)],
            [row for row in calls if _is_of(row, process)],
            [row for row in ranges if row[4] and _is_of(row, process)],
            plain(devices[device], 60) if device in devices else None,
        )
        for number, (process, device) in enumerate(owners)
    ]


def _is_of(row: _Row, process: object) -> bool:
    thread = row[0]
    return not isinstance(process, int) or (
        isinstance(thread, int) and thread >> _PROCESS_BITS == process >> _PROCESS_BITS
    )


def _rank(
    number: int, operations: Sequence[_Row], calls: Sequence[_Row], ranges: Sequence[_Row], device: str | None
) -> RankTrace:
    names, lanes = Numbering[str](), Numbering[str]()
    ran = [
        (names[_name(row)], lanes[f"device {row[0]} stream {row[2]}"], row[3], row[4], row[5], _kind(row))
        for row in operations
    ]
    called, spans = (
        [(names[str(name)], lanes[f"thread {thread}"], start, end, link, 0) for thread, start, end, link, name in rows]
        for rows in (calls, [row for row in ranges if is_loading(str(row[4]))])
    )
    marks = [(_STEP.fullmatch(str(name).strip()), thread, start, end) for thread, start, end, _, name in ranges]
    steps = sorted((start, end, found[1], thread) for found, thread, start, end in marks if found)
    return RankTrace(
        rank=number,
        names=list(names),
        calls=Events.of(called),
        operations=Events.of(ran),
        spans=Events.of(spans),
        steps=[Step(label, start, end) for start, end, label, _ in steps],
        step_lane=lanes[f"thread {steps[0][3]}"] if steps else -1,
        lanes=list(lanes),
        caller=np.arange(len(lanes)),
        device=device,
        notes=() if steps else ("no NVTX ranges mark steps: the whole recording is taken for one step",),
    )


def _name(row: _Row) -> str:
    return str(row[6]) or f"Memcpy {_COPIES.get(row[7], '')}".strip()


def _kind(row: _Row) -> OperationKind:
    if row[7] == -1:
        return OperationKind.COMMUNICATION if collective_kind(str(row[6])) else OperationKind.COMPUTE
    return OperationKind.COPY if row[7] else OperationKind.MEMSET
