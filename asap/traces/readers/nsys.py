"""Nsight Systems, exported to SQLite: ``nsys export --type sqlite FILE.nsys-rep``. Each device of a process is a rank.

Tables: https://docs.nvidia.com/nsight-systems/UserGuide/index.html (SQLite Schema Reference). A table is there only if
something was recorded for it, and columns have been added over the years: what is read here has been there since 2019.
"""

import json
import re
import sqlite3
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from asap.core.errors import BadInputError, InsufficientEvidenceError
from asap.core.text import plain
from asap.profiles.collectives import stated_collective
from asap.traces.trace import (
    ANY_COLLECTIVE,
    CollectiveCall,
    Events,
    Group,
    Numbering,
    OperationKind,
    RankTrace,
    Step,
    collective_kind,
    is_loading,
)

_STEP = re.compile(r"(?:train(?:ing)?[ _]?)?(?:step|iter(?:ation)?)[ _#:]*(\d+)", re.IGNORECASE)
_COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
"""``CUpti_ActivityMemcpyKind``, in the words of Kineto."""

_COLUMNS = "SELECT k.deviceId, k.globalPid, k.streamId, k.start, k.end, k.correlationId"
_OPERATIONS = {
    "CUPTI_ACTIVITY_KIND_KERNEL": "s.value, -1 FROM {} AS k JOIN StringIds AS s ON s.id = k.demangledName",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "'', k.copyKind FROM {} AS k",
    "CUPTI_ACTIVITY_KIND_MEMSET": "'Memset', 0 FROM {} AS k",
}
_CALLS = """
    SELECT r.globalTid, r.start, r.end, r.correlationId, s.value
    FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r JOIN StringIds AS s ON s.id = r.nameId"""
_RANGES = """
    SELECT n.globalTid, n.start, n.end, -1, coalesce(n.text, s.value), {}, {}
    FROM NVTX_EVENTS AS n LEFT JOIN StringIds AS s ON s.id = n.textId WHERE n.end IS NOT NULL"""
_COMMUNICATOR, _SIZE = "NCCL communicator ID", "Message size [bytes]"
"""What the ranges of NCCL say (``src/include/nvtx_payload_schemas.h``), as JSON or as bytes by a schema."""
_ENTRIES = "SELECT schemaId, name, coalesce(offset, 0) FROM NVTX_PAYLOAD_SCHEMA_ENTRIES"
_HEADER = 32  # bytes before those of a schema: domain, schema, length and place, eight each
_UNNAMED = "collectives without a communicator, which newer releases of NCCL say in NVTX: all ranks pass for one group"
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
            ranks = _ranks(database)
    except (sqlite3.Error, TypeError, ValueError, OverflowError) as error:
        raise BadInputError(f"cannot be read: {plain(error, 120)}", where=plain(path)) from error
    if not ranks:
        hint = "record with nsys profile --trace=cuda,nvtx, then export again"
        raise InsufficientEvidenceError("holds no GPU activity", where=plain(path), hint=hint)
    return ranks


def _ranks(database: sqlite3.Connection) -> list[RankTrace]:
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    asked = [f"{_COLUMNS}, {rest.format(table)}" for table, rest in _OPERATIONS.items() if table in tables]
    operations = [row for query in asked for row in database.execute(query)]
    calls = list(database.execute(_CALLS)) if "CUPTI_ACTIVITY_KIND_RUNTIME" in tables else []
    there = {row[1] for row in database.execute("PRAGMA table_info(NVTX_EVENTS)")}
    said = [f"n.{name}" if name in there else "NULL" for name in ("jsonText", "binaryData")]
    ranges = list(database.execute(_RANGES.format(*said))) if there else []
    entries = database.execute(_ENTRIES) if "NVTX_PAYLOAD_SCHEMA_ENTRIES" in tables else ()
    places = {(schema, name): offset for schema, name, offset in entries}
    devices = dict(database.execute("SELECT id, name FROM TARGET_INFO_GPU")) if "TARGET_INFO_GPU" in tables else {}
    return [
        _rank(
            number,
            [row for row in operations if (row[1], row[0]) == (process, device)],
            [row for row in calls if row[0] >> _PROCESS_BITS == process >> _PROCESS_BITS],
            [row for row in ranges if row[4] and row[0] >> _PROCESS_BITS == process >> _PROCESS_BITS],
            plain(devices[device], 60) if device in devices else None,
            places,
        )
        for number, (process, device) in enumerate(sorted({(row[1], row[0]) for row in operations}, key=str))
    ]


_Said = dict[int, tuple[list[int], list[list[tuple[str | None, CollectiveCall]]]]]
"""By thread, from when on kernels are of these calls."""
_Places = dict[tuple[int, str], int]


def _said(ranges: Sequence[_Row], places: _Places) -> _Said:
    """Calls launch as they begin, and those of a group, however deep, when the outermost one ends; of a group, those of
    a kind on one communicator are one kernel (NCCL, "Group Calls")."""
    found: _Said = defaultdict(lambda: ([], []))
    depth, held = defaultdict[int, int](int), defaultdict[int, Counter[tuple[str | None, Group]]](Counter)
    for thread, start, *_, name, text, binary in sorted(ranges, key=lambda row: row[1]):
        depth[thread] = max(depth[thread] + {"ncclGroupStart": 1, "ncclGroupEnd": -1}.get(name, 0), 0)
        group, size = (_field(each, text, binary, places) for each in (_COMMUNICATOR, _SIZE))
        if group and size is not None and name and name.startswith("nccl"):
            held[thread][stated_collective(name.removeprefix("nccl")), Group(f"{group:x}")] += size
        if held[thread] and not depth[thread]:
            found[thread][0].append(start)
            asked = held.pop(thread).items()
            found[thread][1].append([(kind, CollectiveCall(group, size)) for (kind, group), size in asked])
    return found


def _field(name: str, text: str | None, binary: bytes | None, places: _Places) -> int | None:
    """Numbers in JSON may be texts, with commas; a text that is no JSON says nothing."""
    try:
        said = json.loads(text) if text else None
    except ValueError:
        return None
    if isinstance(said, dict) and name in said:
        return int(re.sub(r"\D", "", str(said[name]))[:20] or 0)
    at = places.get((int.from_bytes(binary[8:16], "little"), name)) if isinstance(binary, bytes) else None
    return None if at is None else int.from_bytes((binary or b"")[_HEADER + at :][:8], "little")


def _calls(
    operations: Sequence[_Row], launches: Mapping[int, tuple[int, int]], said: _Said
) -> dict[int, CollectiveCall]:
    """By number of an operation: a kernel is of what was last asked of NCCL before its launch, on the thread of that;
    a group launches its kernels in the order in which it named them."""
    found, taken = dict[int, CollectiveCall](), Counter[tuple[int, int, str]]()
    order = sorted((*launches.get(row[5], (-1, 0))[::-1], number) for number, row in enumerate(operations))
    for launched, thread, number in order:
        row, (begun, asked) = operations[number], said.get(thread, ([], []))
        kind, place = collective_kind(str(row[6])), bisect_right(begun, launched)
        if _kind(row) == OperationKind.COMMUNICATION and kind and place:
            mine = [call for each, call in asked[place - 1] if kind in (each, ANY_COLLECTIVE)]
            found.update((number, call) for call in mine[taken[thread, place, kind] :][:1] or mine[-1:])
            taken[thread, place, kind] += 1
    return found


def _rank(
    number: int, operations: Sequence[_Row], calls: Sequence[_Row], ranges: Sequence[_Row], device: str | None,
    places: _Places,
) -> RankTrace:  # fmt: skip
    names, lanes, groups = Numbering[str](), Numbering[str](), Numbering[CollectiveCall]()
    launches, said = {row[3]: row[:2] for row in calls}, _said(ranges, places)
    which = {place: groups[call] for place, call in _calls(operations, launches, said).items()}
    titles = [str(row[6]) or f"Memcpy {_COPIES.get(row[7], row[7])}" for row in operations]
    ran = [
        (names[title], lanes[f"device {row[0]} stream {row[2]}"], *row[3:6], _kind(row), which.get(place, -1))
        for place, (title, row) in enumerate(zip(titles, operations, strict=True))
    ]
    called, spans = (
        [(names[str(row[4])], lanes[f"thread {row[0]}"], *row[1:4], 0) for row in rows]
        for rows in (calls, [row for row in ranges if is_loading(str(row[4]))])
    )
    marks = [(_STEP.fullmatch(str(name).strip()), thread, start, end) for thread, start, end, _, name, *_ in ranges]
    steps = sorted((start, end, found[1], thread) for found, thread, start, end in marks if found)
    unnamed = any(row[5] == OperationKind.COMMUNICATION and row[6] < 0 for row in ran)
    notes = [] if steps else ["no NVTX ranges mark steps: the whole recording is taken for one step"]
    return RankTrace(
        rank=number, names=list(names), calls=Events.of(called), operations=Events.of(ran), spans=Events.of(spans),
        steps=[Step(label, start, end) for start, end, label, _ in steps], lanes=list(lanes), device=device,
        step_lane=lanes[f"thread {steps[0][3]}"] if steps else -1, caller=np.arange(len(lanes)),
        notes=(*notes, *([_UNNAMED] if unnamed else [])), collectives=list(groups),
    )  # fmt: skip


def _kind(row: _Row) -> OperationKind:
    if row[7] == -1:
        return OperationKind.COMMUNICATION if collective_kind(str(row[6])) else OperationKind.COMPUTE
    return OperationKind.COPY if row[7] else OperationKind.MEMSET
