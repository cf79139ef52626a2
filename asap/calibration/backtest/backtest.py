"""Predictions of published runs against what was measured.

A run of a development source is predicted with the fit that left this source out; a run of any other source with the
full fit, which never saw it either.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from asap.calibration.backtest.baselines import Baseline
from asap.calibration.backtest.blocks import Block, blocks_of, memory_score
from asap.calibration.backtest.loop import Loop
from asap.calibration.backtest.own_runs import OwnRunsScore
from asap.calibration.backtest.predicted_table import PredictedTable
from asap.calibration.backtest.reliability import Reliability, reliability
from asap.calibration.backtest.scores import Errors, MemoryScore, Ranking, WhatIf
from asap.calibration.dataset.inferred_settings import with_inferred_remat
from asap.calibration.dataset.rows import read_models, read_rows
from asap.calibration.dataset.runs import PublishedRun, read_runs
from asap.prediction.step_model.groups import framework_class
from asap.prediction.uncertainty.calibration import Calibration, load_calibration

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
    runs = with_inferred_remat([run for run in found if isinstance(run, PublishedRun)])
    skipped = Counter(reason for reason in found if isinstance(reason, str))
    timed = [run for run in runs if run.step_time is not None]
    fits = [fitted.fit_for(run.source) for run in timed]
    ours = baseline is None
    table = PredictedTable.of(timed, fits) if ours else PredictedTable.of_baseline(timed, baseline, fitted)
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
