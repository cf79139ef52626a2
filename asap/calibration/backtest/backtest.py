"""Predictions of published runs against what was measured.

A run of a development source is predicted with the fit that left this source out; a run of any other source with the
full fit, which never saw it either.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from asap.calibration.backtest.loop import Advice, Loop
from asap.calibration.backtest.own_runs import OwnRunsScore
from asap.calibration.backtest.predicted_table import Baseline, PredictedTable
from asap.calibration.backtest.scores import (
    Errors,
    MemoryScore,
    Ranking,
    Reliability,
    WhatIf,
    pooled_quantile,
    reliability,
    score_memory,
)
from asap.calibration.dataset.rows import read_models, read_rows
from asap.calibration.dataset.runs import PublishedRun, read_runs
from asap.calibration.dataset.sources import UNFITTED, duplicates, infer_missing_remat
from asap.calibration.fit.predicted_runs import reserved_bytes, stacked
from asap.prediction.step_model.groups import framework_class
from asap.prediction.uncertainty.calibration import Calibration, Fit, load_calibration

TITLES = {
    "seen": "seen by the fit",
    "left_out": "left out of the fit, variants were chosen on them",
    "never_used": "never used for a fit or a choice",
}


class Block(BaseModel):
    """Scores of one block; every source weighs the same."""

    model_config = ConfigDict(frozen=True)

    sources: int
    rows: int
    median_of_medians: float = Field(description="median over sources of the source's median error")
    p90: float = Field(description="90 % quantile of the error, sources weighing the same")
    coverage_mean: float = Field(description="share inside the 90 % interval, mean over sources")
    coverage_worst: float = Field(description="of the worst source")
    half_width: float = Field(description="median over sources of the median half-width of ln(measured / predicted)")
    what_if_median: float | None = Field(default=None, description="median over sources of what-if errors")
    what_if_coverage: float | None = Field(default=None, description="mean over sources")
    ranking: Ranking
    advice: Advice
    memory: MemoryScore
    loop: Loop | None = None
    by_source: dict[str, Errors] = Field(description="worst first")
    what_if_by_source: dict[str, WhatIf]


def blocks_of(runs: Sequence[PublishedRun], known: Calibration, *, loop: bool = False) -> dict[str, Block]:
    """The blocks that have timed runs, by the keys of :data:`TITLES`. What another source publishes as well is used."""
    ours = [run for run in runs if run.source in known.rows]
    seen = [run for run in ours if run.source not in UNFITTED]
    twice = {name for pair in duplicates(runs) for name in pair}
    others = [run for run in runs if run.source not in known.rows and run.id not in twice]
    parts = {
        "seen": (seen, [known.full] * len(seen)),
        "left_out": (ours, [known.fit_for(run.source) for run in ours]),
        "never_used": (others, [known.full] * len(others)),
    }
    found = {name: _block(own, fits, loop) for name, (own, fits) in parts.items()}
    return {name: block for name, block in found.items() if block is not None}


def _block(runs: Sequence[PublishedRun], fits: Sequence[Fit], loop: bool) -> Block | None:
    timed = [row for row, run in enumerate(runs) if run.step_time is not None]
    if not timed:
        return None
    table = PredictedTable.of([runs[row] for row in timed], [fits[row] for row in timed])
    names = [run.source for run in table.runs]
    by_source = table.by(lambda run: run.source)
    changes: dict[str, WhatIf] = {}
    for name in by_source:
        found = table.part([row for row, source in enumerate(names) if source == name]).what_if()
        changes |= {name: found} if found else {}
    covered = [errors.coverage_90 or 0.0 for errors in by_source.values()]
    return Block(
        sources=len(by_source),
        rows=len(timed),
        median_of_medians=round(float(np.median([errors.median_ape for errors in by_source.values()])), 4),
        p90=pooled_quantile(np.abs(table.predicted / table.measured - 1), names, 0.9),
        coverage_mean=round(float(np.mean(covered)), 4),
        coverage_worst=min(covered),
        half_width=round(float(np.median([errors.half_width or 0.0 for errors in by_source.values()])), 4),
        what_if_median=round(float(np.median([w.median_ape for w in changes.values()])), 4) if changes else None,
        what_if_coverage=round(float(np.mean([w.coverage_90 or 0 for w in changes.values()])), 4) if changes else None,
        ranking=table.ranking(),
        advice=table.advice(),
        memory=memory_score(runs, fits),
        loop=table.loop() if loop else None,
        by_source=by_source,
        what_if_by_source=changes,
    )


def memory_score(runs: Sequence[PublishedRun], fits: Sequence[Fit]) -> MemoryScore:
    """What is said of runs that fitted and of runs that did not."""
    if not runs:
        return score_memory(np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))
    fitting = reserved_bytes(runs, fits) <= stacked(runs).hardware.hbm_bytes
    return score_memory(fitting, np.array([run.out_of_memory for run in runs]))


KNOWN = (3, 1000)
"""Own runs that are given of a source, at most half of it: a few, and many."""
OURS = "development sources: the fit without the row's own source; other sources: the full fit"


class BacktestReport(BaseModel):
    """Everything that ``asap accuracy backtest`` reports. Fractions, not percent."""

    model_config = ConfigDict(frozen=True)

    rows: int = Field(description="rows in the file")
    predicted: int = Field(description="rows with a prediction: of step time, or of memory if they ran out of it")
    skipped: dict[str, int] = Field(description="reason → rows")
    model: str = Field(description="ours, or the baseline")
    method: str = Field(description="which fit was used on which row")
    calibrated: str = Field(description="date of the calibration")
    step_time: Errors | None
    by_hardware: dict[str, Errors]
    by_source: dict[str, Errors]
    by_framework: dict[str, Errors]
    by_family: dict[str, Errors]
    what_if: WhatIf | None
    ranking: Ranking
    memory: MemoryScore
    reliability: tuple[Reliability, ...] = Field(
        default=(), description="whether runs that were said to fit with some probability fitted as often"
    )
    loop: Loop | None = None
    own_runs: tuple[OwnRunsScore, ...] = Field(default=(), description="narrowed by half of a source's own runs")
    blocks: dict[str, Block] = Field(description="seen, left_out, never_used: each scored by itself")


def backtest(
    runs_paths: Sequence[Path],
    models_path: Path,
    *,
    loop: bool = False,
    baseline: Baseline | None = None,
    calibration: Calibration | None = None,
) -> BacktestReport:
    """Score predictions of the runs in files.

    Args:
        runs_paths: measured runs, one JSON object a line.
        models_path: architectures, one JSON object a line.
        loop: whether to tune each group of four or more shardings, run by run.
        baseline: score this baseline instead of our model; memory is still ours.
        calibration: the bundled one by default.

    Raises:
        ConfigError: a file cannot be read, or a line of it is not a JSON object.
    """
    rows = [row for path in runs_paths for row in read_rows(path)]
    fitted = calibration or load_calibration()
    found = list(read_runs(rows, read_models(models_path)))
    runs = infer_missing_remat([run for run in found if isinstance(run, PublishedRun)])
    skipped = Counter(reason for reason in found if isinstance(reason, str))
    timed = [run for run in runs if run.step_time is not None]
    fits = [fitted.fit_for(run.source) for run in timed]
    ours = baseline is None
    table = PredictedTable.of(timed, fits) if ours else PredictedTable.from_baseline(timed, baseline, fitted)
    return BacktestReport(
        rows=len(rows),
        predicted=len(runs),
        skipped=dict(sorted(skipped.items())),
        model=baseline or "ours",
        method=OURS,
        calibrated=fitted.date,
        step_time=table.errors(),
        by_hardware=table.by(lambda run: run.chip),
        by_source=table.by(lambda run: run.source),
        by_framework=table.by(lambda run: framework_class(run.framework) or "other"),
        by_family=table.by(lambda run: run.family),
        what_if=table.what_if(),
        ranking=table.ranking(),
        memory=memory_score(runs, [fitted.fit_for(run.source) for run in runs]),
        reliability=reliability(runs, [fitted.fit_for(run.source) for run in runs]) if runs else (),
        loop=table.loop() if loop else None,
        own_runs=tuple(score for known in KNOWN if (score := table.own_runs(known)) is not None),
        blocks=blocks_of(runs, fitted, loop=loop) if ours else {},
    )
