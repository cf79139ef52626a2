"""Bars of the terminal's report: what a step is made of, and its HBM against the capacity."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from asap.core.units import Provenance, format_bytes, format_seconds
from asap.prediction.prediction import OPTIMIZER_ON_CPU, MemoryPrediction, Prediction
from asap.reports.analysis import Analysis
from asap.reports.phrases import baseline, fit_mark

COMPUTE, MIXED, HBM, COLLECTIVES = "compute", "compute and other", "HBM", "collectives"
OPAQUE = "custom calls without FLOPs"
HOST, IDLE, OTHER, UNLISTED = "host", "idle or bubble", "other", "not listed"
_LOOKS = {
    COMPUTE: ("█", "#", "green"),
    MIXED: ("▬", "o", "blue"),
    HBM: ("▓", "%", "yellow"),
    COLLECTIVES: ("▒", "=", "red"),
    OPAQUE: ("▚", "x", "magenta"),
    HOST: ("▞", "+", "cyan"),
    OTHER: ("─", "-", "blue"),
    IDLE: ("░", ".", "white"),
    UNLISTED: ("·", "?", "dim"),
}
"""Kind of time, in the order of a bar → glyph, glyph in ASCII, colour."""
_RESOURCES = {
    "compute": COMPUTE, "hbm": HBM, "communication": COLLECTIVES, "opaque": OPAQUE, "host_transfer": HOST,
    "host": HOST, "idle": IDLE, "unknown": OTHER,
}  # fmt: skip
_PARTS = {
    "compute": COMPUTE, "compute and other": MIXED, "hbm": HBM, "host": HOST, "pipeline bubble": IDLE,
    "optimizer": OTHER, OPTIMIZER_ON_CPU: OTHER, "other": OTHER,
}  # fmt: skip
_WIDEST, _HBM_WIDTH, _BESIDE = 48, 10, 58
"""Cells of a bar of time, of a bar of HBM, and of all columns beside the bar of time."""
_ALL_OF_IT = 0.95
"""Share of a step from which on one part is all that a bar can show."""
_NARROW = 76
"""Cells below which HBM is left out: the table of the proposals has it too."""


@dataclass(frozen=True)
class _Row:
    label: str
    time: str
    length: float
    parts: Mapping[str, float]
    """Kind → the same unit as ``length``."""
    memory: MemoryPrediction | None = None

    @property
    def tells(self) -> bool:
        """Whether it shows more than the length of the step: several parts, or HBM."""
        return self.memory is not None or max(self.parts.values(), default=self.length) < _ALL_OF_IT * self.length


@dataclass(frozen=True)
class StepBars:
    """The step that was measured and those that are predicted, as bars of one scale; nothing if none is known."""

    analysis: Analysis

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [row for row in _rows(self.analysis) if row.tells]
        if not rows:
            return
        ascii_only = options.ascii_only
        with_memory = options.max_width >= _NARROW and any(row.memory for row in rows)
        room = options.max_width - (_BESIDE if with_memory else _BESIDE - _HBM_WIDTH - 20)
        width = max(min(room, _WIDEST), 8)
        longest = max(row.length for row in rows) or 1.0
        table = Table.grid(padding=(0, 2, 0, 0))
        for row in rows:
            cells = [Text(f"  {row.label}"), Text(row.time), _time(row, width / longest, ascii_only)]
            table.add_row(*cells, *(_memory(row.memory, ascii_only) if with_memory else ()))
        shown = [kind for kind in _LOOKS if any(row.parts.get(kind) for row in rows)]
        lines: list[RenderableType] = [Text("What the step is made of", style="bold cyan"), table]
        if shown:
            lines.append(Text("  ").append(Text("  ").join(_legend(kind, ascii_only) for kind in shown)))
        yield Group(*lines)


def _rows(analysis: Analysis) -> Iterator[_Row]:
    incumbent, kpis = analysis.incumbent, analysis.kpis
    step = kpis.step_time_s if kpis else None
    has_model = incumbent is not None and bool(incumbent.parts)
    if analysis.time_shares and step is not None:
        memory = None if has_model or incumbent is None else incumbent.memory
        known = "stated" if analysis.experiment.stated else "measured"
        yield _Row("now", f"{format_seconds(step)} {known}", step, _measured(analysis.time_shares, step), memory)
    if incumbent is not None and has_model:
        yield _predicted(baseline(analysis), incumbent, Provenance.MODELLED if analysis.time_shares else None)
    for proposal in analysis.proposals:
        yield _predicted(str(proposal.rank), proposal.prediction)


def _measured(shares: Mapping[str, float], step: float) -> dict[str, float]:
    """Operations that overlap add up to more than the step: then they are drawn scaled."""
    parts: dict[str, float] = {}
    for resource, share in shares.items():
        kind = _RESOURCES.get(resource, OTHER)
        parts[kind] = parts.get(kind, 0.0) + share
    total = sum(parts.values())
    parts[UNLISTED] = max(1.0 - total, 0.0)
    return {kind: share * step / max(total, 1.0) for kind, share in parts.items()}


def _predicted(label: str, prediction: Prediction, known: Provenance | None = None) -> _Row:
    parts: dict[str, float] = {}
    for part in prediction.parts:
        kind = _PARTS.get(part.name, COLLECTIVES)
        parts[kind] = parts.get(kind, 0.0) + part.exposed_s
    step = prediction.step_time
    said = f"{format_seconds(step.value)} {(known or step.provenance).value}" if step else ""
    return _Row(label, said, sum(parts.values()), parts, prediction.memory)


def _time(row: _Row, scale: float, ascii_only: bool) -> Text:
    bar, end, drawn = Text(no_wrap=True), 0.0, 0
    for kind, (glyph, plain_glyph, style) in _LOOKS.items():
        end += row.parts.get(kind, 0.0)
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
