"""An answer for a terminal or a pipe."""

import re
import textwrap
from collections.abc import Iterator, Sequence

from pydantic import BaseModel

from asap.core.text import plain_lines
from asap.reports.answers.blocks import Block, Bullets, Facts, Paste, Table, blocks_of

WIDTH = 100
_INTERVAL = re.compile(r" \([^()]* to [^()]*\)$")
"""What a cell loses first where a table is too wide."""
_LEADING = 4
"""Columns that keep their interval the longest: name, plan, step time, what it is against now."""
_GAP = "  "
_LABEL = 18


def to_text(answer: BaseModel, width: int = WIDTH) -> str:
    """Plain text without control characters; lines to paste are never broken."""
    return "\n".join(line for block in blocks_of(answer) for line in _lines(block, width)) + "\n"


def _lines(block: Block, width: int) -> Iterator[str]:
    if isinstance(block, Facts):
        for label, value in block.rows:
            yield from _wrapped(f"{label:<{_LABEL}} {value}", width, " " * (_LABEL + 1))
    elif isinstance(block, Bullets):
        yield f"{block.title}:"
        for item in block.items:
            yield from _wrapped(f"- {item}", width, "  ")
    elif isinstance(block, Paste):
        yield f"{block.title}:"
        yield from (f"    {plain_lines(line)}" for line in block.lines)
    else:
        yield from _table(block, width)


def _table(table: Table, width: int) -> Iterator[str]:
    yield f"{table.title}{f' ({table.basis})' if table.basis else ''}:"
    for kept in (len(table.columns), _LEADING, 0):
        rows = [[cell if n < kept else _INTERVAL.sub("", cell) for n, cell in enumerate(row)] for row in table.rows]
        widths = [max(map(len, column)) for column in zip(table.columns, *rows, strict=True)]
        if sum(widths) + len(_GAP) * len(widths) <= width:
            yield _row(table.columns, widths)
            yield from (_row(row, widths) for row in rows)
            return
    for row in table.rows:
        known = [(name, value) for name, value in zip(table.columns, row, strict=True) if value]
        first, *rest = known or [("", "")]
        tail = "; ".join(f"{name} {value}" for name, value in rest)
        yield from _wrapped(f"- {first[1]}{': ' if tail else ''}{tail}", width, "  ")


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return _GAP + _GAP.join(f"{cell:<{size}}" for cell, size in zip(cells, widths, strict=True)).rstrip()


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [""]  # fmt: skip
