"""The scorecard of a backtest as rows of a table."""

import math
from collections.abc import Mapping, Sequence

from asap.calibration.backtest.backtest import TITLES, BacktestReport, Block
from asap.calibration.backtest.loop import Loop
from asap.calibration.backtest.own_runs import Narrowed, OwnRunsScore
from asap.calibration.backtest.scores import Errors, Reliability
from asap.core.units import format_percent

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
        ("evaluations to within 2 % of the best, mean", f"{loop.mean_evaluations or 0:.2f}"),
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
        ("Kendall tau", "" if ranking.kendall_tau is None else f"{ranking.kendall_tau:.2f}"),
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
