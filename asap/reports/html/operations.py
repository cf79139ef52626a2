"""The operations as rows of a table that the page sorts, searches and extends."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from asap.core.text import plain
from asap.core.units import format_percent
from asap.profiles import Operation
from asap.reports.profile_facts import resource_name

_COLUMNS = (
    ("operation", "text"),
    ("category", "text"),
    ("bound", "text"),
    ("share", "percent"),
    ("time", "seconds"),
    ("times", "number"),
    ("FLOP/s", "percent"),
    ("HBM", "percent"),
    ("of roofline", "percent"),
    ("shape", "text"),
    ("source", "text"),
)
FIRST_ROWS = 25
"""Rows in the page itself, for print and for readers without scripts."""
MOST_BYTES = 3_000_000
_WIDTHS = {"name": 120, "category": 40, "shape": 120, "source": 120}


@dataclass(frozen=True)
class OperationTable:
    """Columns with name and kind, where any row has a value; rows, longest self time first, in SI units.

    ``left_out`` says what is too much for a page.
    """

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]
    total: int
    left_out: str


def operation_table(operations: Sequence[Operation]) -> OperationTable | None:
    """As many operations as a page can hold; nothing where there are none."""
    if not operations:
        return None
    rows, size = [], 0
    for operation in operations:
        row = _row(operation)
        size += len(json.dumps(row))
        if size > MOST_BYTES:
            break
        rows.append(row)
    kept = [at for at, _ in enumerate(_COLUMNS) if any(row[at] not in (None, "") for row in rows)]
    return OperationTable(
        columns=tuple(_COLUMNS[at] for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in rows),
        total=len(operations),
        left_out=_left_out(operations[len(rows) :]),
    )


def _row(op: Operation) -> tuple[Any, ...]:
    return (
        plain(op.name, _WIDTHS["name"]),
        plain(op.category, _WIDTHS["category"]),
        "opaque" if op.opaque else "" if op.bound == "unknown" else resource_name(op.bound),
        _rounded(op.fraction),
        _rounded(op.time_s),
        _rounded(op.occurrences),
        _rounded(op.flop_utilisation),
        _rounded(op.memory_utilisation),
        _rounded(op.roofline_efficiency),
        plain(op.shape or "", _WIDTHS["shape"]),
        plain(op.source or "", _WIDTHS["source"]),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _left_out(rest: Sequence[Operation]) -> str:
    if not rest:
        return ""
    share = format_percent(sum(operation.fraction for operation in rest))
    return f"{len(rest):,} more operations, {share} of the time, are left out."
