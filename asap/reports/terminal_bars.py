"""Bars of the terminal's report: what a step is made of, and its HBM against the capacity."""

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from asap.core.units import format_bytes, format_seconds
from asap.prediction.prediction import MemoryPrediction
from asap.reports import time_bars as kinds
from asap.reports.analysis import Analysis
from asap.reports.phrases import fit_mark
from asap.reports.time_bars import TimeBar, time_bars

_LOOKS = {
    kinds.COMPUTE: ("█", "#", "green"),
    kinds.MIXED: ("▬", "o", "blue"),
    kinds.HBM: ("▓", "%", "yellow"),
    kinds.COLLECTIVES: ("▒", "=", "red"),
    kinds.OPAQUE: ("▚", "x", "magenta"),
    kinds.HOST: ("▞", "+", "cyan"),
    kinds.BUBBLE: ("╌", ":", "white"),
    kinds.OTHER: ("─", "-", "blue"),
    kinds.IDLE: ("░", ".", "white"),
    kinds.UNLISTED: ("·", "?", "dim"),
}
"""Kind of time, in the order of a bar → glyph, glyph in ASCII, colour."""
_JOINED = {kinds.TRANSFER: kinds.HOST, kinds.OPTIMIZER: kinds.OTHER}
"""Kinds that share a glyph with another; so do all collectives."""
_WIDEST, _HBM_WIDTH, _BESIDE = 48, 10, 58
"""Cells of a bar of time, of a bar of HBM, and of all columns beside the bar of time."""
_ALL_OF_IT = 0.95
"""Share of a step from which on one part is all that a bar can show."""
_NARROW = 76
"""Cells below which HBM is left out: the table of the proposals has it too."""


@dataclass(frozen=True)
class StepBars:
    """The step that was measured and those that are predicted, as bars of one scale; nothing if none is known."""

    analysis: Analysis

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        bars, in_seconds = time_bars(self.analysis)
        rows = [bar for bar in bars if _tells(bar)]
        if not rows or not in_seconds:
            return
        ascii_only = options.ascii_only
        with_memory = options.max_width >= _NARROW and any(row.memory for row in rows)
        room = options.max_width - (_BESIDE if with_memory else _BESIDE - _HBM_WIDTH - 20)
        width = max(min(room, _WIDEST), 8)
        longest = max(row.length for row in rows) or 1.0
        table = Table.grid(padding=(0, 2, 0, 0))
        for row in rows:
            label, step = row.label.removeprefix("proposal "), format_seconds(row.total or row.length)
            cells = [Text(f"  {label}"), Text(f"{step} {row.provenance}"), _time(row, width / longest, ascii_only)]
            table.add_row(*cells, *(_memory(row.memory, ascii_only) if with_memory else ()))
        shown = [kind for kind in _LOOKS if any(kind in _parts(row) for row in rows)]
        lines: list[RenderableType] = [Text("What the step is made of", style="bold cyan"), table]
        if shown:
            lines.append(Text("  ").append(Text("  ").join(_legend(kind, ascii_only) for kind in shown)))
        yield Group(*lines)


def _tells(bar: TimeBar) -> bool:
    """Whether it shows more than the length of the step: several parts, or HBM."""
    return bar.memory is not None or max(_parts(bar).values()) < _ALL_OF_IT * bar.length


def _parts(bar: TimeBar) -> Mapping[str, float]:
    """Kind → seconds."""
    found: dict[str, float] = {}
    for segment in bar.segments:
        kind = kinds.COLLECTIVES if segment.kind.startswith(kinds.COLLECTIVES) else segment.kind
        kind = _JOINED.get(kind, kind)
        found[kind] = found.get(kind, 0.0) + segment.length
    return found


def _time(row: TimeBar, scale: float, ascii_only: bool) -> Text:
    bar, end, drawn, parts = Text(no_wrap=True), 0.0, 0, _parts(row)
    for kind, (glyph, plain_glyph, style) in _LOOKS.items():
        end += parts.get(kind, 0.0)
        cells = round(end * scale) - drawn
        bar.append((plain_glyph if ascii_only else glyph) * cells, style=style)
        drawn += cells
    return bar


def _memory(memory: MemoryPrediction | None, ascii_only: bool) -> tuple[Text, Text]:
    if memory is None:
        return Text(), Text()
    filled = min(round(memory.total.value / memory.capacity_bytes * _HBM_WIDTH), _HBM_WIDTH)
    full, free = ("#", ".") if ascii_only else ("█", "░")
    bar = Text(full * filled, style="blue" if memory.fits else "bold red").append(
        free * (_HBM_WIDTH - filled), style="dim"
    )
    used, capacity = format_bytes(memory.total.value), format_bytes(memory.capacity_bytes)
    used = used.removesuffix(f" {capacity.rpartition(' ')[2]}")
    return bar, Text(f"{used}{fit_mark(memory)} of {capacity}")


def _legend(kind: str, ascii_only: bool) -> Text:
    glyph, plain_glyph, style = _LOOKS[kind]
    return Text(plain_glyph if ascii_only else glyph, style=style).append(f" {kind}", style="dim")
