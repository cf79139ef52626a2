"""Thunk tables of nsys-jax: what each XLA executable issued, and when the GPU ran it.

One CSV a process, a line a thunk, in the order of issue: ``execution, index, hlo_op, cpu_start_us, cpu_end_us,
gpu_start_us, gpu_end_us``. A GPU has one compute and one communication stream: a collective that has a ``-done`` runs
on the latter, and its ``-done`` makes the former wait for it. Those of a kind are done in the order of issue.
"""

import csv
import gzip
import re
import zlib
from collections import deque
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TextIO

import numpy as np

from asap.core.errors import BadInputError, InsufficientEvidenceError
from asap.core.text import plain
from asap.traces.trace import Events, Numbering, OperationKind, RankTrace, Step, collective_kind

US = 1000
_HOST, _COMPUTE, _COMMUNICATION = range(3)
_LANES = ("thread", "compute stream", "communication stream")
_DONE = "-done"
_COLUMNS = ("execution", "index", "hlo_op", "cpu_start_us", "cpu_end_us", "gpu_start_us", "gpu_end_us")
_RANK = re.compile(r"(?:rank|proc|process)[_-]?(\d+)", re.IGNORECASE)


def read_thunks(path: Path) -> RankTrace:
    """Read the table of one process; times are nanoseconds on its own clock.

    Raises:
        BadInputError: the file cannot be read, or a line is not as it should be.
        InsufficientEvidenceError: no thunk ran on a GPU.
    """
    try:
        with _open(path) as file:
            rows = list(_rows(path, file))
    except (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error) as error:
        raise BadInputError(f"cannot be read: {plain(error, 120)}", where=plain(path)) from error
    table = _Table({_collective(row["hlo_op"]) for _, row in rows if _DONE in (row["hlo_op"] or "")})
    for number, row in rows:
        try:
            table.add(row)
        except (ValueError, InvalidOperation, TypeError, AttributeError) as error:
            raise BadInputError(f"line {number} is not a thunk", where=plain(path)) from error
    found = _RANK.search(path.name)
    return table.build(path, int(found.group(1)) if found else 0)


def _rows(path: Path, file: TextIO) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(file)
    if missing := [column for column in _COLUMNS if column not in (reader.fieldnames or ())]:
        raise BadInputError(f"lacks the columns {', '.join(missing)}", where=plain(path))
    yield from enumerate(reader, start=2)


class _Table:
    def __init__(self, asynchronous: set[str | None]) -> None:
        self.names: Numbering[str] = Numbering()
        self.calls: list[tuple[int, ...]] = []
        self.operations: list[tuple[int, ...]] = []
        self.waits: list[tuple[int, int]] = []
        self.executions: dict[str, list[int]] = {}
        self._asynchronous = asynchronous
        self._running: dict[str | None, deque[int]] = {kind: deque() for kind in asynchronous}
        self._awaited: list[int] = []
        self._last_compute = -1

    def add(self, row: dict[str, str]) -> None:
        """One thunk, in the order of issue."""
        name = row["hlo_op"]
        start, end = _nanoseconds(row["cpu_start_us"]), _nanoseconds(row["cpu_end_us"])
        self.calls.append((self.names[name], _HOST, start, end, len(self.calls), 0))
        self.executions.setdefault(row["execution"], []).extend((start, end))
        kind = _collective(name)
        if kind and _DONE in name:
            self._awaited += [self._running[kind].popleft()] if self._running[kind] else []
        elif row["gpu_start_us"]:
            self._add_operation(name, kind, _nanoseconds(row["gpu_start_us"]), _nanoseconds(row["gpu_end_us"]))

    def _add_operation(self, name: str, kind: str | None, start: int, end: int) -> None:
        number = len(self.operations)
        is_async = kind is not None and kind in self._asynchronous
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
            hint = "export with the GPU projection of NVTX ranges"
            raise InsufficientEvidenceError("holds no GPU activity", where=plain(path), hint=hint)
        order = np.lexsort(np.array(self.operations)[:, [3, 2]].T)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return RankTrace(
            rank=rank, names=list(self.names), lanes=_LANES, calls=Events.of(self.calls), spans=Events.of([]),
            operations=Events.of(self.operations), caller=np.arange(len(_LANES)), executions=True, step_lane=_HOST,
            steps=[Step(label, min(moments), max(moments)) for label, moments in self.executions.items()],
            waits=place[np.array(self.waits, dtype=np.int64).reshape(-1, 2)],
        )  # fmt: skip


def _collective(name: str) -> str | None:
    return collective_kind(name.replace(_DONE, "").replace("-start", ""))


def _nanoseconds(microseconds: str) -> int:
    return int((Decimal(microseconds) * US).to_integral_value())


def _open(path: Path) -> TextIO:
    if path.name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")
