"""An answer for a terminal or a pipe."""

import re
from collections.abc import Iterator
from itertools import zip_longest

from pydantic import BaseModel

from asap.core.text import plain_lines, wrapped
from asap.reports.answers.blocks import Block, Bullets, Facts, Paste, Table, blocks_of

WIDTH = 100
_INTERVAL = re.compile(r" \([^()]* to [^()]*\)$")
"""What a cell loses first where a table is too wide."""
_TELLING = ("step time", "against now")
"""Columns that keep their interval the longest."""
_NARROW, _NARROWEST = 20, 8
"""Characters of a line of the widest column before another column loses its intervals; and of any column."""
_TALLEST = 6
"""Lines of a cell in a table; where one would take more, each row is drawn as facts."""
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
    rows, widths, room = list[list[str]](), list[int](), width - len(_GAP) * len(table.columns)
    for kept in (table.columns, _TELLING, _TELLING[1:], ()):
        named = [zip(table.columns, row, strict=True) for row in table.rows]
        rows = [[cell if name in kept else _INTERVAL.sub("", cell) for name, cell in row] for row in named]
        widths = [max(map(len, column)) for column in zip(table.columns, *rows, strict=True)]
        if sum(widths) - max(widths) + min(max(widths), _NARROW) <= room:
            break
    while sum(widths) > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    drawn = [[_wrapped(cell, size) for cell, size in zip(row, widths, strict=True)] for row in (table.columns, *rows)]
    if max(len(cell) for cells in drawn for cell in cells) > _TALLEST:
        yield from _apart(table, width)
        return
    for cells in drawn:
        for line in zip_longest(*cells, fillvalue=""):
            yield _GAP + _GAP.join(f"{one:<{size}}" for one, size in zip(line, widths, strict=True)).rstrip()


def _apart(table: Table, width: int) -> Iterator[str]:
    """Each row under its first cell, a line for each of the others."""
    for row in table.rows:
        first, *others = [(label, cell) for label, cell in zip(table.columns, row, strict=True) if cell]
        yield from _wrapped(f"{_GAP}{first[1]}", width, _GAP * 2)
        for label, cell in others:
            yield from _wrapped(f"{_GAP * 2}{label:<{_LABEL - 2}} {cell}", width, " " * (_LABEL + 3))


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return wrapped(text, width, subsequent_indent=indent, break_long_words=False)
