"""Scores of a backtest as tables."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from itertools import combinations

import numpy as np
from pydantic import BaseModel

from asap.calibration.backtest.backtest import TITLES, BacktestReport, Block
from asap.calibration.backtest.predicted_table import PredictedTable
from asap.calibration.dataset.runs import PublishedRun
from asap.core.text import markdown
from asap.core.units import format_percent, significant
from asap.plans import AXES
from asap.prediction.step_model.groups import framework_class, precision_class

_NO_SHARES = ("kendall_tau", "mean_evaluations")


def score_table(title: str, scores: Mapping[str, BaseModel]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Columns and rows of scores of one kind, their figures under the names of the fields."""
    fields = [
        name
        for one in list(scores.values())[:1]
        for name in type(one).model_fields
        if any(isinstance(getattr(each, name), int | float) for each in scores.values())
    ]
    rows = [(name, *(_figure(field, getattr(one, field)) for field in fields)) for name, one in scores.items()]
    return (title, *(field.replace("_", " ") for field in fields)), rows


def score_tables(reports: Mapping[str, BacktestReport]) -> Iterator[tuple[str, Mapping[str, BaseModel]]]:
    """Scores of one kind, each under a title: block by block of the first report, then those that all reports have."""
    ours = next(iter(reports.values()))
    yield "block", {TITLES[name]: block for name, block in ours.blocks.items()}
    for name, block in ours.blocks.items():
        yield f"{TITLES[name]}: source", block.by_source
        yield f"{TITLES[name]}: what-if", block.what_if_by_source
    yield "settings beside the mesh vary", {TITLES[name]: block.advice for name, block in ours.blocks.items()}
    for score in ours.own_runs:
        yield f"half of own runs, at most {score.known}", {"mean of sources": score.mean, **score.by_source}
    fits = {f"{each.allocator}, {format_percent(each.low, 0)} or more": each for each in ours.reliability}
    yield "said to fit", fits
    yield "tuning run by run", {"all groups": ours.loop} if ours.loop else {}
    for kind in ("step_time", "what_if", "ranking", "memory"):
        scores = {name: getattr(report, kind) for name, report in reports.items()}
        yield kind.replace("_", " "), {name: score for name, score in scores.items() if score is not None}
    for kind in ("by_hardware", "by_source"):
        found = {
            f"{name}: {key}": one for name, report in reports.items() for key, one in getattr(report, kind).items()
        }
        yield kind.replace("_", " "), found


def _figure(field: str, value: float | None) -> str:
    if isinstance(value, float) and field not in _NO_SHARES:
        return _width(value) if field.startswith("half_width") else _share(value)
    return f"{value:,}" if isinstance(value, int) else "" if value is None else significant(value)


def block_rows(block: Block) -> list[tuple[str, ...]]:
    """A block, source by source, the worst first: rows, median, p90, width, covers, what-if's median and coverage; the
    last row is over sources."""
    rows = []
    for name, errors in block.by_source.items():
        change = block.what_if_by_source.get(name)
        changed = (_share(change.median_ape), _share(change.coverage_90)) if change else ("", "")
        own = (_share(errors.median_ape), _share(errors.p90_ape), _width(errors.half_width))
        rows.append((name, str(errors.rows), *own, _share(errors.coverage_90), *changed))
    everything = (_share(block.median_of_medians), _share(block.p90), _width(block.half_width))
    covers = f"{_share(block.coverage_mean)}, worst {_share(block.coverage_worst)}"
    changed = (_share(block.what_if_median), _share(block.what_if_coverage))
    return [*rows, (f"{block.sources} sources", str(block.rows), *everything, covers, *changed)]


def _share(fraction: float | None) -> str:
    return "" if fraction is None else format_percent(fraction)


def _width(half_width: float | None) -> str:
    return "" if half_width is None else f"±{format_percent(math.expm1(half_width))}"


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
}


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
    ratio = significant(float(np.exp(np.median(residuals))))
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
