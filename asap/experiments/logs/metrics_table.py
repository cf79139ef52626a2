"""A table of metrics as lines of JSON: what trackers export as CSV, a row a step, is read as what a run logs."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
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
        ConfigError: it is no table.
    """
    text = stream.read(_LARGEST).decode("utf-8-sig", errors="replace")
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    rows = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    try:
        return io.BytesIO("".join(f"{json.dumps(row)}\n" for row in _objects(rows)).encode())
    except csv.Error as error:
        raise ConfigError(f"is no table: {error}", where=str(path)) from error


def _objects(rows: Iterable[dict[str | None, str | list[str] | None]]) -> Iterator[dict[str, object]]:
    for row in rows:
        yield {
            name.rpartition(_RUN)[2]: _number(value)
            for name, value in row.items()
            if name and isinstance(value, str) and value.strip() and not name.endswith(_ENDS)
        }


def _number(text: str) -> object:
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text
