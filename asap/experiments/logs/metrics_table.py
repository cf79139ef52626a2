"""A table of metrics as lines of JSON: what trackers export as CSV, a row a step, is read as what a run logs."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import reduce
from itertools import groupby
from operator import or_
from pathlib import Path
from typing import IO, Any

from asap.core.errors import ConfigError

SUFFIXES = (".csv", ".tsv")
_LARGEST = 64 << 20  # bytes that are read of one
_ENDS = ("__MIN", "__MAX")  # of the columns in which W&B repeats each metric
_STEPS = ("step", "steps", "iteration", "iter", "update")  # last words of what counts rows
_DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_RUN = " - "  # between the name of a run and that of a metric, as W&B joins them


def is_table(path: Path) -> bool:
    """Whether a file is a table by its name."""
    return path.suffix.casefold() in SUFFIXES


def as_lines(stream: IO[bytes], path: Path) -> IO[bytes]:
    """The numbers and dates of a table as lines of JSON, each with the name of its column.

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
        steps = [name for name in kept if re.split(r"[^a-z]", name.lower().rstrip("_ "))[-1] in _STEPS]
        if not steps:
            raise ConfigError("has no column of steps", where=str(path), hint="export the step beside each metric")
        point = "," if delimiter == ";" else "."
        found = _values(rows, metrics, point)
        groups = groupby(found, lambda one: one.get(metrics[steps[0]]))
        of_steps = (reduce(or_, reversed([*alike])) for _, alike in groups)
        return io.BytesIO("".join(f"{json.dumps(one)}\n" for one in of_steps).encode())
    except csv.Error as error:
        raise ConfigError(f"is no table: {error}", where=str(path)) from error


def _values(rows: Iterable[Mapping[str, object]], metrics: Mapping[str, str], point: str) -> Iterator[dict[str, Any]]:
    """The numbers and dates of rows; several rows may have those of one step."""
    for row in rows:
        found = ((metric, _value(str(row.get(name) or "").replace(point, "."))) for name, metric in metrics.items())
        yield {metric: value for metric, value in found if value is not None}


def _value(text: str) -> int | float | str | None:
    with suppress(ValueError):
        return int(text) if text.isdecimal() else float(text)
    return text if _DATE.match(text) else None
