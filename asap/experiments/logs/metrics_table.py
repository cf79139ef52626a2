"""A table of metrics as lines of JSON: what trackers export as CSV, a row a step, is read as what a run logs."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

from asap.core.errors import ConfigError

SUFFIXES = (".csv", ".tsv")
_LARGEST = 64 << 20
"""Bytes that are read of one."""
_ENDS = ("__MIN", "__MAX")
"""Of the columns in which W&B repeats each metric."""
_RUN = " - "
"""Between the name of a run and that of a metric, as W&B joins them."""


def is_table(path: Path) -> bool:
    """Whether a file is a table by its name."""
    return path.suffix.casefold() in SUFFIXES


def as_lines(stream: IO[bytes], path: Path) -> IO[bytes]:
    """The rows of a table as lines of JSON, each with the names of its columns.

    Raises:
        ConfigError: it is no table, too large, or one of several runs.
    """
    raw = stream.read(_LARGEST + 1)
    if len(raw) > _LARGEST:
        raise ConfigError(f"is larger than {_LARGEST:,} bytes", where=str(path), hint="export fewer columns or steps")
    text = raw.decode("utf-8-sig", errors="replace")
    first = text.partition("\n")[0]
    rows = csv.DictReader(io.StringIO(text), delimiter=max(",;\t", key=first.count))
    try:
        kept = [name for name in rows.fieldnames or () if name and not name.endswith(_ENDS)]
        metrics = {name: name.rpartition(_RUN)[2] for name in kept}
        if len({*metrics.values()}) < len(metrics):
            raise ConfigError("has the metrics of several runs", where=str(path), hint="export those of one run")
        return io.BytesIO("".join(f"{json.dumps(one)}\n" for one in _objects(rows, metrics)).encode())
    except csv.Error as error:
        raise ConfigError(f"is no table: {error}", where=str(path)) from error


def _objects(rows: Iterable[Mapping[str, object]], metrics: Mapping[str, str]) -> Iterator[dict[str, object]]:
    for row in rows:
        said = ((metric, row.get(name)) for name, metric in metrics.items())
        yield {metric: _number(value) for metric, value in said if isinstance(value, str) and value.strip()}


def _number(text: str) -> object:
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text
