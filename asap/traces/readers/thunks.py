"""nsys-jax: what each XLA executable issued, thunk by thunk, and when a GPU ran it.

Read are its GPU projection of NVTX ranges (Parquet; JAX-Toolbox), where each thread issues to a device, and tables of
thunks, one CSV a process. A GPU has one compute and one communication stream: a collective that has a
``-start`` or ``-done`` runs on the latter, and its ``-done``, which a projection leaves out, makes the former wait for
it. Those of a kind are done in their order.
"""

import re
from collections import deque
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from asap.core.errors import BadInputError, InsufficientEvidenceError
from asap.core.text import plain
from asap.traces.readers.passes import columns_of
from asap.traces.trace import Events, Numbering, OperationKind, RankTrace, Step, collective_kind

_HOST, _COMPUTE, _COMMUNICATION = range(3)
_LANES = ("thread", "compute stream", "communication stream")
_START, _DONE = "-start", "-done"
_RANK = re.compile(r"(?:rank|proc|process)[_-]?(\d+)", re.IGNORECASE)
_TIMES = ("cpu_start_us", "cpu_end_us", "gpu_start_us", "gpu_end_us")
_COLUMNS = dict.fromkeys(("execution", "index", "hlo_op"), "varchar") | dict.fromkeys(_TIMES, "decimal(24, 3)")
_LISTED = f"""
select 0, execution, hlo_op, {", ".join(f"cast(1000 * {time} as bigint)" for time in _TIMES)}
from read_csv($path, header = true, delim = ',', auto_detect = false, columns = {_COLUMNS})"""
_PROJECTED = r"""
with ranges as (select *, "Name" like 'TSL:Thunk:%' as thunk from read_parquet($path)),
runs as (select "TID", "RangeId" as run, regexp_extract("Name", 'program_id=(\d+)', 1) as program from ranges
         where "Name" like 'TSL:XlaModule:%program_id=%'),
thunks as (select t.*, run, program from ranges t join runs r on t."TID" = r."TID"
             and contains(t."RangeStack" || ':', ':' || cast(run as bigint) || ':')
           where thunk and "RangeId" not in (select "ParentId" from ranges where thunk and "ParentId" is not null))
select "TID", cast(dense_rank() over (partition by "TID" order by run) - 1 as varchar),
  regexp_extract("Name", 'hlo_op=([^,#]*)', 1), cast("Orig Start" as bigint) as issued,
  cast("Orig Start" + "Orig Duration" as bigint), "Projected Start", "Projected Start" + "Projected Duration"
from thunks
where program = (select program from thunks group by program order by sum("Projected Duration") desc limit 1)
order by "TID", issued"""
"""Thunks that contain no others, of the program that ran longest; those that the autotuner tries have no number."""


class _Thunk(NamedTuple):
    """Times are nanoseconds; none of the GPU where nothing ran on it."""

    thread: int
    execution: str
    name: str
    issued: int
    returned: int
    begun: int | None
    ended: int | None


def read_thunks(path: Path) -> list[RankTrace]:
    """Read the devices of one process; times are nanoseconds on its own clock.

    Raises:
        BadInputError: the file cannot be read, or has other columns.
        InsufficientEvidenceError: no thunk ran on a GPU.
    """
    columns = columns_of(path, _PROJECTED if path.suffix == ".parquet" else _LISTED).values()
    thunks = [_Thunk._make(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    if any(None in thunk[:5] for thunk in thunks):
        raise BadInputError("has a thunk without its name, or without when it was issued", where=plain(path))
    found = _RANK.search(path.name)
    devices = [list(each) for _, each in groupby(thunks, key=lambda thunk: thunk.thread)] or [[]]
    return [_Table(each).build(path, int(found.group(1)) if found else number) for number, each in enumerate(devices)]


class _Table:
    def __init__(self, thunks: Sequence[_Thunk]) -> None:
        self.names: Numbering[str] = Numbering()
        self.calls: list[tuple[int, ...]] = []
        self.operations: list[tuple[int, ...]] = []
        self.waits: list[tuple[int, int]] = []
        self.executions: dict[str, list[int]] = {}
        halves = (thunk.name for thunk in thunks if _START in thunk.name or _DONE in thunk.name)
        self._running: dict[str | None, deque[int]] = {_collective(name): deque() for name in halves}
        self._awaited: list[int] = []
        self._last_compute = -1
        for thunk in thunks:
            self._add(thunk)

    def _add(self, thunk: _Thunk) -> None:
        """In the order of issue."""
        self.calls.append((self.names[thunk.name], _HOST, thunk.issued, thunk.returned, len(self.calls), 0))
        self.executions.setdefault(thunk.execution, []).extend((thunk.issued, thunk.returned))
        kind = _collective(thunk.name)
        if kind and _DONE in thunk.name:
            self._awaited += [self._running[kind].popleft()] if self._running[kind] else []
        elif thunk.begun is not None and thunk.ended is not None:
            self._add_operation(thunk.name, kind, thunk.begun, thunk.ended)

    def _add_operation(self, name: str, kind: str | None, start: int, end: int) -> None:
        number = len(self.operations)
        is_async = kind is not None and kind in self._running
        lane = _COMMUNICATION if is_async else _COMPUTE
        does = OperationKind.COMMUNICATION if kind else OperationKind.COMPUTE
        self.operations.append((self.names[name], lane, start, end, len(self.calls) - 1, does))
        if is_async:
            self._running[kind].append(number)
            self.waits += [(number, self._last_compute)] if self._last_compute >= 0 else []
        else:
            self.waits += [(number, awaited) for awaited in self._awaited]
            self._awaited.clear()
            self._last_compute = number

    def build(self, path: Path, rank: int) -> RankTrace:
        """The trace of the process."""
        if not self.operations:
            raise InsufficientEvidenceError("holds no GPU activity", where=plain(path), hint="record --trace=cuda,nvtx")
        place = np.argsort(np.lexsort(np.array(self.operations)[:, [3, 2]].T))
        return RankTrace(
            rank=rank, names=list(self.names), lanes=_LANES, calls=Events.of(self.calls), spans=Events.of([]),
            operations=Events.of(self.operations), caller=np.arange(len(_LANES)), executions=True, step_lane=_HOST,
            steps=[Step(label, min(moments), max(moments)) for label, moments in self.executions.items()],
            waits=place[np.array(self.waits, dtype=np.int64).reshape(-1, 2)],
        )  # fmt: skip


def _collective(name: str) -> str | None:
    return collective_kind(name.replace(_DONE, "").replace("-start", ""))
