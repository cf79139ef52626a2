"""Predictions of published runs against what was measured.

A run of a development source is predicted with the fit that left this source out; a run of any other source with the
full fit, which never saw it either.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from asap.calibration.backtest.baselines import Baseline, baseline_step_times
from asap.calibration.backtest.scores import (
    Errors,
    MemoryScore,
    Ranking,
    WhatIf,
    score_errors,
    score_memory,
    score_ranking,
)
from asap.calibration.dataset.inferred_settings import with_inferred_remat
from asap.calibration.dataset.pairs import grouped, pairs_of
from asap.calibration.dataset.rows import read_models, read_rows
from asap.calibration.dataset.runs import PublishedRun, read_runs
from asap.calibration.fit.predicted_runs import predict_each, stacked
from asap.prediction.step_model.groups import framework_class
from asap.prediction.uncertainty.calibration import Calibration, load_calibration

Vector = NDArray[np.float64]

OURS = "development sources: the fit without the row's own source; other sources: the full fit"


class BacktestReport(BaseModel):
    """Everything that ``asap backtest`` reports. Fractions, not percent."""

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


@dataclass(frozen=True)
class _Table:
    """Timed runs with their predictions. Seconds; half-widths of ln(measured / predicted)."""

    runs: Sequence[PublishedRun]
    predicted: Vector
    measured: Vector
    half_widths: Vector | None

    def errors(self, rows: Sequence[int]) -> Errors | None:
        chosen = np.array(rows, dtype=int)
        widths = None if self.half_widths is None else self.half_widths[chosen]
        sources = [self.runs[row].source for row in rows]
        return score_errors(self.predicted[chosen], self.measured[chosen], sources, widths)

    def by(self, key: Callable[[PublishedRun], str]) -> dict[str, Errors]:
        rows: dict[str, list[int]] = defaultdict(list)
        for index, run in enumerate(self.runs):
            rows[key(run)].append(index)
        found = {name: self.errors(indices) for name, indices in sorted(rows.items())}
        return {name: errors for name, errors in found.items() if errors is not None}


def backtest(
    runs_path: Path,
    models_path: Path,
    *,
    baseline: Baseline | None = None,
    calibration: Calibration | None = None,
) -> BacktestReport:
    """Score predictions of the runs in a file.

    Args:
        runs_path: measured runs, one JSON object a line.
        models_path: architectures, one JSON object a line.
        baseline: score this baseline instead of our model; memory is still ours.
        calibration: the bundled one by default.

    Raises:
        ConfigError: a file cannot be read, or a line of it is not a JSON object.
    """
    rows = read_rows(runs_path)
    fitted = calibration or load_calibration()
    found = list(read_runs(rows, read_models(models_path)))
    runs = with_inferred_remat([run for run in found if isinstance(run, PublishedRun)])
    skipped = Counter(reason for reason in found if isinstance(reason, str))
    table = _predictions([run for run in runs if run.step_time is not None], fitted, baseline)
    return BacktestReport(
        rows=len(rows),
        predicted=len(runs),
        skipped=dict(sorted(skipped.items())),
        model=baseline or "ours",
        method=OURS,
        calibrated=fitted.date,
        step_time=table.errors(range(len(table.runs))),
        by_hardware=table.by(lambda run: run.chip),
        by_source=table.by(lambda run: run.source),
        by_framework=table.by(lambda run: framework_class(run.framework) or "other"),
        by_family=table.by(lambda run: run.family),
        what_if=_what_if(table, fitted),
        ranking=_ranking(table),
        memory=_memory(runs, fitted),
    )


def _predictions(runs: Sequence[PublishedRun], calibration: Calibration, baseline: Baseline | None) -> _Table:
    measured = np.array([run.step_time for run in runs], dtype=float)
    if not runs:
        return _Table(runs, measured, measured, None)
    if baseline is not None:
        return _Table(runs, baseline_step_times(baseline, stacked(runs), runs, calibration), measured, None)
    fits = [calibration.fit_for(run.source) for run in runs]
    forecast = predict_each(runs, fits)
    widths = [fit.step_widths.at(far) for fit, far in zip(fits, forecast.distance, strict=True)]
    return _Table(runs, forecast.step_time, measured, np.array(widths))


def _what_if(table: _Table, calibration: Calibration) -> WhatIf | None:
    pairs = pairs_of(table.runs)
    if not len(pairs.known):
        return None
    known, other = pairs.known, pairs.other
    sources = [table.runs[index].source for index in known]
    missed = np.log(table.measured[known] / table.predicted[known])
    if table.half_widths is None:
        shift, widths = missed, None
    else:
        fits = [calibration.fit_for(source) for source in sources]
        steps = list(zip(fits, missed, pairs.distance, strict=True))
        shift = np.array([float(fit.residual_transfer.expected(residual, far)) for fit, residual, far in steps])
        widths = np.array([fit.anchored_widths.at(far) for fit, _, far in steps])
    predicted = table.predicted[other] * np.exp(shift)
    errors = score_errors(predicted, table.measured[other], sources, widths)
    return WhatIf(pairs=len(known), **errors.model_dump()) if errors else None


def _ranking(table: _Table) -> Ranking:
    """Over groups with two or more shardings; runs of one plan are one sharding, with their mean."""
    groups = []
    for members in grouped(table.runs):
        plans: dict[str, list[int]] = defaultdict(list)
        for index in members:
            plans[str(table.runs[index].plan)].append(index)
        if len(plans) > 1:
            rows = list(plans.values())
            predicted = np.array([table.predicted[own].mean() for own in rows])
            groups.append((predicted, np.array([table.measured[own].mean() for own in rows])))
    return score_ranking(groups)


def _memory(runs: Sequence[PublishedRun], calibration: Calibration) -> MemoryScore:
    if not runs:
        return score_memory(np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))
    fits = [calibration.fit_for(run.source) for run in runs]
    forecast = predict_each(runs, fits)
    return score_memory(forecast.memory_bytes <= forecast.hbm_bytes, np.array([run.out_of_memory for run in runs]))
