"""How well runs of each kind are predicted, with no own run, one and three."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from asap.calibration.backtest.predicted_table import PredictedTable
from asap.core.text import markdown
from asap.core.units import format_percent
from asap.prediction.step_model.groups import framework_class, generation
from asap.prediction.uncertainty.step_interval import DENSE, MIXTURE, cell_of

OWN = (1, 3)
"""Own runs that are given of a source, at most half of it."""
FEW = 3
"""Sources below which a cell says little. Judgement: which cells are marked."""
_HEAD = (
    "| runs | sources | runs | median error | half-width | covers | with one own run | half-width | with three"
    " | half-width |\n|---|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class CellScore:
    """Predictions of a cell's sources with some own runs. Fractions, in the median over sources; coverage is a mean."""

    sources: int
    error: float
    half_width: float
    covers: float


@dataclass(frozen=True)
class Cell:
    """A kind of runs: without own runs, and with one and three of a source, where it has enough of them."""

    name: str
    runs: int
    none: CellScore
    one: CellScore | None
    three: CellScore | None


def cells(table: PredictedTable) -> list[Cell]:
    """Those of stack, kind of model and generation of chip, then both kinds over all stacks."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, run in enumerate(table.runs):
        kind = MIXTURE if run.architecture.is_moe else DENSE
        rows[f"{cell_of(framework_class(run.framework), kind)}, {generation(run.chip)}"].append(row)
        rows[f"all {kind}"].append(row)
    order = sorted(rows, key=lambda name: (name.startswith("all "), name))
    return [_cell(name, table.part(rows[name])) for name in order]


def cell_table(found: Sequence[Cell]) -> str:
    """Markdown; a cell of fewer than :data:`FEW` sources says so."""
    return "\n".join([_HEAD, *map(_line, found)])


def _cell(name: str, table: PredictedTable) -> Cell:
    errors = table.by(lambda run: run.source).values()
    none = _score([(each.median_ape, each.half_width or 0.0, each.coverage_90 or 0.0) for each in errors])
    one, three = (_add_own(table, known) for known in OWN)
    return Cell(name, len(table.runs), none, one, three)


def _add_own(table: PredictedTable, known: int) -> CellScore | None:
    score = table.own_runs(known)
    if score is None:
        return None
    each = score.by_source.values()
    return _score([(one.error_after, one.half_width_after, one.coverage_after) for one in each])


def _score(values: Sequence[tuple[float, float, float]]) -> CellScore:
    error, width, covers = np.array(values).T
    return CellScore(len(values), float(np.median(error)), float(np.median(width)), float(np.mean(covers)))


def _line(cell: Cell) -> str:
    few = "" if cell.none.sources >= FEW else " (few)"
    own = [text for score in (cell.one, cell.three) for text in _error_and_width(score)]
    values = (
        markdown(cell.name), f"{cell.none.sources}{few}", f"{cell.runs:,}", *_error_and_width(cell.none),
        format_percent(cell.none.covers), *own,
    )  # fmt: skip
    return f"| {' | '.join(values)} |"


def _error_and_width(score: CellScore | None) -> tuple[str, str]:
    if score is None:
        return "", ""
    return format_percent(score.error), f"±{format_percent(math.expm1(score.half_width), 0)}"
