"""A table of metrics as lines of JSON: what trackers export as CSV, a row a step, is read as what a run logs."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

from asap.core.errors import ConfigError

SUFFIXES = (".csv", ".tsv")
_LARGEST = 64 << 20
"""Bytes that are read of one."""
_ENDS = ("__MIN", "__MAX")
"""Of the columns in which W&B repeats each metric."""
_STEPS = ("step", "steps", "iteration", "iter", "update")
"""Last words of what counts rows."""
_RUN = " - "
"""Between the name of a run and that of a metric, as W&B joins them."""


def is_table(path: Path) -> bool:
    """Whether a file is a table by its name."""
    return path.suffix.casefold() in SUFFIXES


def as_lines(stream: IO[bytes], path: Path) -> IO[bytes]:
    """The numbers of a table as lines of JSON, each with the name of its column.

    Raises:
        ConfigError: it is no table, too large, one of several runs, or says no steps.
    """
    raw = stream.read(_LARGEST + 1)
    if len(raw) > _LARGEST:
        raise ConfigError(f"is larger than {_LARGEST:,} bytes", where=str(path), hint="export fewer columns or steps")
    text = raw.decode("utf-8-sig", errors="replace")
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    rows = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    try:
        kept = [name for name in rows.fieldnames or () if name and not name.endswith(_ENDS)]
        metrics = {name: name.rpartition(_RUN)[2] for name in kept}
        if len({*metrics.values()}) < len(metrics):
            raise ConfigError("has the metrics of several runs", where=str(path), hint="export those of one run")
        if not any(re.split(r"[^a-z]", name.lower().rstrip("_ "))[-1] in _STEPS for name in kept):
            raise ConfigError("has no column of steps", where=str(path), hint="export the step beside each metric")
        point = "," if delimiter == ";" else "."
        return io.BytesIO("".join(f"{json.dumps(one)}\n" for one in _numbers(rows, metrics, point)).encode())
    except csv.Error as error:
        raise ConfigError(f"is no table: {error}", where=str(path)) from error


def _numbers(
    rows: Iterable[Mapping[str, object]], metrics: Mapping[str, str], point: str
) -> Iterator[dict[str, float]]:
    for row in rows:
        found = {metric: _number(str(row.get(name) or "").replace(point, ".")) for name, metric in metrics.items()}
        yield {metric: value for metric, value in found.items() if value is not None}


def _number(text: str) -> float | None:
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return None
