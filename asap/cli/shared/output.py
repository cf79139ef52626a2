"""Output shared by the commands: formats, tables, warnings and progress."""

import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from asap.plans import Plan

PIPE_WIDTH = 140


class Verbosity(StrEnum):
    """How much is said beside the result; errors always are."""

    QUIET = "quiet"
    NORMAL = "normal"
    VERBOSE = "verbose"


_verbosity = Verbosity.NORMAL


def set_verbosity(quiet: bool, verbose: bool) -> None:
    """What two switches ask for, for the rest of the process; quiet wins."""
    global _verbosity
    _verbosity = Verbosity.QUIET if quiet else Verbosity.VERBOSE if verbose else Verbosity.NORMAL


def verbosity() -> Verbosity:
    """How much is said."""
    return _verbosity


class Format(StrEnum):
    """How a result is printed."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    JSON = "json"


class Plain(StrEnum):
    """How a list or a record is printed."""

    TERMINAL = "terminal"
    JSON = "json"


def console(stream: TextIO | None = None) -> "Console":
    """Standard output, or another stream; no colour when piped or with ``NO_COLOR``."""
    from rich.console import Console

    target = stream or sys.stdout
    width = None if target.isatty() else PIPE_WIDTH
    return Console(file=target, highlight=False, emoji=False, markup=False, width=width)


def warn(message: object) -> None:
    """One line on standard error, unless it is to be quiet."""
    if _verbosity is Verbosity.QUIET:
        return
    from asap.core.text import plain

    print(f"asap: {plain(message)}", file=sys.stderr)


def warn_about_data(texts: "Sequence[str]", incumbent: "Plan | None") -> None:
    """Say what ``data`` was taken for in plans, where their writer may mean MaxText's plain data parallelism."""
    from asap.plans.text import data_note

    for note in dict.fromkeys(data_note(text, incumbent.degree("replica") if incumbent else 1) for text in texts):
        if note:
            warn(note)


def print_json(value: "BaseModel | Sequence[BaseModel] | object") -> None:
    """Print models, or plain data, as JSON."""
    import json

    def encode(item: object) -> object:
        dump = getattr(item, "model_dump", None)
        if dump is None:
            return str(item)
        return dump(mode="json", by_alias=True)

    print(json.dumps(value, indent=2, default=encode, ensure_ascii=False))


Form = Annotated[Plain, typer.Option("--format", help="Output format.")]


def print_rows(form: Plain, document: object, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a document as JSON, or its rows as a table."""
    if form is Plain.JSON:
        print_json(document)
    else:
        print_table(columns, rows)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows as a table, numbers rounded; control characters in cells are removed."""
    from rich.table import Table
    from rich.text import Text

    from asap.core.text import plain
    from asap.core.units import significant

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold cyan")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(significant(cell) if isinstance(cell, float) else plain(cell)) for cell in row))
    console().print(table)
