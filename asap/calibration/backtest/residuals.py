"""Where predictions of left-out sources miss: by chip, stack, year and parallel axis, as a page."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from itertools import combinations

import numpy as np

from asap.calibration.backtest.predicted_table import PredictedTable
from asap.calibration.dataset.runs import PublishedRun
from asap.core.text import markdown
from asap.core.units import format_percent
from asap.plans import AXES
from asap.prediction.step_model.groups import framework_class, precision_class

Labels = Callable[[PublishedRun], Iterable[str]]

_AXES = {"replica": "replica (data)", "data": "data (FSDP)", "seq": "seq (context)", "model": "model (tensor)"}
_VIEWS: dict[str, Labels] = {
    "Source": lambda run: (run.source,),
    "Chip": lambda run: (run.chip,),
    "Stack": lambda run: (framework_class(run.framework) or "other",),
    "Precision": lambda run: (precision_class(run.workload.precision),),
    "Year": lambda run: (str(run.year) if run.year else "not said",),
    "Parallel axis": lambda run: [_AXES.get(axis, axis) for axis in AXES if run.plan.degree(axis) > 1] or ["none"],
    "Model": lambda run: ("mixture of experts" if run.architecture.is_moe else "dense",),
}  # fmt: skip


def residual_tables(table: PredictedTable) -> str:
    """Markdown: one table for each view, the largest error first."""
    return "\n\n".join(f"## {title}\n\n{_view(table, labels)}" for title, labels in _VIEWS.items())


def _view(table: PredictedTable, labels: Labels) -> str:
    rows: dict[str, list[int]] = defaultdict(list)
    for index, run in enumerate(table.runs):
        for label in labels(run):
            rows[label].append(index)
    found = sorted(((_line(table, own), label) for label, own in rows.items()), reverse=True)
    head = "| | sources | runs | median error | measured over predicted | covered |\n|---|---|---|---|---|---|"
    return "\n".join([head, *(f"| {markdown(label)} | {' | '.join(line[1:])} |" for line, label in found)])


def _line(table: PredictedTable, rows: list[int]) -> tuple[float, str, str, str, str, str]:
    part = table.part(rows)
    residuals = np.log(part.measured / part.predicted)
    error = float(np.median(np.abs(part.predicted / part.measured - 1)))
    sources = len({run.source for run in part.runs})
    covered = format_percent(float((np.abs(residuals) <= part.widths).mean()), 0) if part.widths is not None else ""
    ratio = f"{np.exp(np.median(residuals)):.2f}"
    return error, str(sources), str(len(rows)), format_percent(error), ratio, covered


_HEAD = """| source | source | pairs of runs | tokens/s differ by | predictions miss by |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Agreement:
    """Two sources that publish the same runs. Fractions, in the median over pairs of runs.

    Args:
        source: of one run of each pair.
        other: of the other.
        pairs: of runs.
        apart: by how much the faster of a pair has more tokens/s.
        error: by how much our predictions of the two miss, each by a fit without its source.
    """

    source: str
    other: str
    pairs: int
    apart: float
    error: float


def agreements(table: PredictedTable) -> list[Agreement]:
    """Of every two sources that have runs of the same model, sequence length, precision, framework, chip and degrees on
    as many chips; data parallelism may be sharded or not, and batches may differ."""
    alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for row, run in enumerate(table.runs):
        if run.workload.tokens:
            alike[_what_ran(run)].append(row)
    tokens = np.array([(run.workload.tokens or math.nan) / run.plan.devices for run in table.runs])
    rate = np.log(tokens / table.measured)
    error = np.abs(table.predicted / table.measured - 1)
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for rows in alike.values():
        for one, other in combinations(sorted(rows, key=lambda row: table.runs[row].source), 2):
            names = table.runs[one].source, table.runs[other].source
            if names[0] != names[1]:
                found[names].append((float(np.expm1(abs(rate[one] - rate[other]))), float(error[[one, other]].mean())))
    medians = {names: np.median(pairs, axis=0) for names, pairs in found.items()}
    return [Agreement(*names, len(found[names]), *map(float, medians[names])) for names in sorted(found)]


def agreement_table(found: list[Agreement]) -> str:
    """Markdown: a line for every two sources, those that lie furthest apart first; the median over all last."""
    lines = [_agreement_line(*astuple(one)) for one in sorted(found, key=lambda one: one.apart, reverse=True)]
    apart, error = np.median([(one.apart, one.error) for one in found], axis=0)
    return _HEAD + "\n".join([*lines, _agreement_line("median", "", sum(one.pairs for one in found), apart, error)])


def _agreement_line(source: str, other: str, pairs: int, apart: float, error: float) -> str:
    return f"| {markdown(source)} | {markdown(other)} | {pairs} | {format_percent(apart)} | {format_percent(error)} |"


def _what_ran(run: PublishedRun) -> tuple[object, ...]:
    shapes = run.architecture
    model = shapes.layers, shapes.d_model, shapes.d_ff, shapes.experts, run.workload.sequence_length
    data = run.plan.degree("replica") * run.plan.degree("data")
    degrees = data, *(run.plan.degree(axis) for axis in AXES if axis not in ("replica", "data"))
    software = framework_class(run.framework), precision_class(run.workload.precision)
    return *model, *degrees, *software, run.chip
