"""The scorecard of a backtest as rows of a table."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import combinations

import numpy as np

from asap.calibration.backtest.backtest import TITLES, BacktestReport, Block
from asap.calibration.backtest.loop import Loop
from asap.calibration.backtest.own_runs import Narrowed, OwnRunsScore
from asap.calibration.backtest.predicted_table import PredictedTable
from asap.calibration.backtest.scores import Errors, Reliability
from asap.calibration.dataset.runs import PublishedRun
from asap.core.text import markdown
from asap.core.units import format_percent, significant
from asap.plans import AXES
from asap.prediction.step_model.groups import framework_class, precision_class

BLOCK_COLUMNS = ("source", "rows", "median", "p90", "90 % interval", "covers", "what-if", "covers")
ADVICE_COLUMNS = ("settings beside the mesh vary", "groups", "sources", "regret as it is", "of proposal 1", "by source")
OWN_COLUMNS = ("own runs given", "rows", "median", "with them", "90 % interval", "with them", "covers", "with them")
COLUMNS = ("", "rows", "macro median", "median", "mean", "p90", "90 % interval covers")


def block_rows(block: Block) -> list[tuple[str, ...]]:
    """A block, source by source, the worst first, under :data:`BLOCK_COLUMNS`; the last row is over sources."""
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


def advice_rows(blocks: Mapping[str, Block]) -> list[tuple[str, ...]]:
    """What the first proposal loses where settings beside the mesh vary, block by block."""
    return [
        (
            TITLES[name], str(block.advice.groups), str(block.advice.sources), _share(block.advice.regret_now),
            _share(block.advice.mean_regret), _share(block.advice.macro_regret),
        )
        for name, block in blocks.items()
        if block.advice.groups
    ]  # fmt: skip


def loop_rows(loop: Loop) -> list[tuple[str, str]]:
    """Evaluations until within 2 % of the best measured."""
    return [
        ("groups of four or more shardings", str(loop.groups)),
        ("evaluations to within 2 % of the best, mean", significant(loop.mean_evaluations or 0)),
        ("evaluations of the worst group", str(loop.worst_evaluations or 0)),
        ("groups that need one evaluation", _share(loop.within_first)),
    ]


def own_runs_rows(scores: Sequence[OwnRunsScore]) -> list[tuple[str, ...]]:
    """What own runs bring, under :data:`OWN_COLUMNS`: means over sources, and each source with the most runs."""
    rows = [_own_row(f"half, at most {score.known}: mean of sources", score.mean) for score in scores]
    return [*rows, *(_own_row(f"  {name}", found) for name, found in scores[-1].by_source.items())] if scores else []


def scorecard_rows(report: BacktestReport) -> list[tuple[str, ...]]:
    """Step time overall and by group, what-if, ranking and memory, under :data:`COLUMNS`."""
    rows = [_row("step time", report.step_time)]
    for label, groups in (("hardware", report.by_hardware), ("source", report.by_source)):
        rows += [_row(f"  {label} {name}", errors) for name, errors in groups.items()]
    rows.append(_row("what-if", report.what_if))
    return rows


def ranking_and_memory_rows(report: BacktestReport) -> list[tuple[str, str]]:
    """Ranking and memory."""
    ranking, memory = report.ranking, report.memory
    return [
        ("groups of two or more shardings", str(ranking.groups)),
        ("our first is within 2 % of the best measured", _share(ranking.top1_within_2pct)),
        ("the best measured is among our first three", _share(ranking.best_in_top3)),
        ("mean regret of our first", _share(ranking.mean_regret)),
        ("mean regret after our first three were measured", _share(ranking.regret_after_three)),
        ("Kendall tau", "" if ranking.kendall_tau is None else significant(ranking.kendall_tau)),
        (f"out-of-memory recall, of {memory.oom_rows} runs", _share(memory.oom_recall)),
        (f"successful runs accepted, of {memory.ok_rows}", _share(memory.ok_accepted)),
        *map(_reliability_row, report.reliability),
        *((f"skipped: {reason}", str(count)) for reason, count in report.skipped.items()),
    ]


def baseline_rows(ours: BacktestReport, baselines: Sequence[BacktestReport]) -> list[tuple[str, ...]]:
    """Median errors of our model and of others on the same rows, and the mean regret of their rankings."""
    reports = (ours, *baselines)
    rows = [
        ("step time, macro", *(_macro(report.step_time) for report in reports)),
        ("what-if, macro", *(_macro(report.what_if) for report in reports)),
        ("mean regret", *(_share(report.ranking.mean_regret) for report in reports)),
    ]
    for label, groups in (("hardware", "by_hardware"), ("source", "by_source")):
        for name in getattr(ours, groups):
            medians = (getattr(report, groups)[name].median_ape for report in reports)
            rows.append((f"  {label} {name}", *map(_share, medians)))
    return rows


def _reliability_row(row: Reliability) -> tuple[str, str]:
    said = f"{row.allocator}, said to fit at {format_percent(row.low, 0)} to {format_percent(row.high, 0)}"
    return f"{said}, of {row.runs} runs", f"{format_percent(row.fitted, 0)} fitted, {format_percent(row.said, 0)} said"


def _own_row(label: str, found: Narrowed) -> tuple[str, ...]:
    pairs = (
        (_share(found.error_before), _share(found.error_after)),
        (_width(found.half_width_before), _width(found.half_width_after)),
        (_share(found.coverage_before), _share(found.coverage_after)),
    )
    return (label, str(found.rows), *(cell for pair in pairs for cell in pair))


def _macro(errors: Errors | None) -> str:
    return _share(errors.macro_median_ape if errors else None)


def _row(label: str, errors: Errors | None) -> tuple[str, ...]:
    if errors is None:
        return (label, "0", "", "", "", "", "")
    shares = (errors.macro_median_ape, errors.median_ape, errors.mape, errors.p90_ape, errors.coverage_90)
    return (label, str(errors.rows), *(_share(share) for share in shares))


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
