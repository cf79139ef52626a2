"""Where predictions of left-out sources miss: by chip, stack, year and parallel axis, as a page."""

from collections import defaultdict
from collections.abc import Callable, Iterable

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
