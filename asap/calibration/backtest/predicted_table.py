"""Timed runs with their predictions: the one table that a backtest scores, as a whole or a part of it."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from asap.calibration.backtest.loop import Advice, Loop, TuningProblem, score_advice, score_loop
from asap.calibration.backtest.own_runs import OwnRunsScore, score_own_runs
from asap.calibration.backtest.scores import Errors, Ranking, WhatIf, score_errors, score_ranking
from asap.calibration.dataset.runs import PublishedRun
from asap.calibration.dataset.sources import grouped, pairs_of
from asap.calibration.fit.predicted_runs import change_of_pairs, half_widths, predict_each, stacked
from asap.prediction.step_model.compute import model_flops
from asap.prediction.step_model.inputs import StepInputs
from asap.prediction.step_model.physics import fastest
from asap.prediction.step_model.step import predict_step
from asap.prediction.uncertainty.calibration import Calibration, Fit

Baseline = Literal["constant-mfu", "roofline"]
BASELINES: tuple[Baseline, ...] = get_args(Baseline)
Vector = NDArray[np.float64]


def baseline_step_times(
    baseline: Baseline, inputs: StepInputs, runs: Sequence[PublishedRun], calibration: Calibration
) -> Vector:
    """Seconds of a step of each run, by a baseline."""
    devices = np.array([run.hardware.devices for run in runs])
    if baseline == "constant-mfu":
        usual = np.array([_usual(run, calibration) for run in runs])
        return np.asarray(model_flops(inputs) / (devices * inputs.hardware.peak_matmul * usual))
    ideal = predict_step(inputs, fastest())
    collectives = np.stack(
        [ideal.tensor, ideal.sequence, ideal.expert, ideal.data, ideal.replica + ideal.slices, ideal.stage]
    )
    return np.maximum(model_flops(inputs) / (devices * inputs.hardware.peak_matmul), collectives.max(axis=0))


def _usual(run: PublishedRun, calibration: Calibration) -> float:
    others = [value for source, value in calibration.utilisation.get(run.chip, {}).items() if source != run.source]
    if not others:
        tables = calibration.utilisation.values()
        others = [value for table in tables for source, value in table.items() if source != run.source]
    return float(np.median(others))


@dataclass(frozen=True)
class PredictedTable:
    """Timed runs with predictions by their own fits. Seconds; half-widths of ln(measured / predicted).

    ``likeliest`` is the prediction of the likeliest reading of a run, from which a what-if starts, and ``parts`` are
    those of its step, of shape (runs, parts); a baseline has one.
    """

    runs: Sequence[PublishedRun]
    fits: Sequence[Fit]
    measured: Vector
    predicted: Vector
    likeliest: Vector
    widths: Vector | None
    parts: Vector

    @classmethod
    def of(cls, runs: Sequence[PublishedRun], fits: Sequence[Fit]) -> "PredictedTable":
        """Our predictions."""
        measured = np.array([run.step_time for run in runs], dtype=float)
        if not runs:
            return cls(runs, fits, measured, measured, measured, measured, measured[:, None])
        found = predict_each(runs, fits)
        return cls(runs, fits, measured, found.step_time, found.likeliest, half_widths(found, fits), found.parts)

    @classmethod
    def from_baseline(cls, runs: Sequence[PublishedRun], baseline: Baseline, known: Calibration) -> "PredictedTable":
        """A baseline's; it has no interval."""
        measured = np.array([run.step_time for run in runs], dtype=float)
        fits = [known.fit_for(run.source) for run in runs]
        found = baseline_step_times(baseline, stacked(runs), runs, known) if runs else measured
        return cls(runs, fits, measured, found, found, None, found[:, None])

    def part(self, rows: Sequence[int]) -> "PredictedTable":
        """Some of the rows."""
        chosen = np.array(rows, dtype=int)
        widths = None if self.widths is None else self.widths[chosen]
        runs, fits = [self.runs[row] for row in rows], [self.fits[row] for row in rows]
        times = (self.measured[chosen], self.predicted[chosen], self.likeliest[chosen])
        return PredictedTable(runs, fits, *times, widths, self.parts[chosen])

    def errors(self) -> Errors | None:
        """Of step times."""
        return score_errors(self.predicted, self.measured, [run.source for run in self.runs], self.widths)

    def own_runs(self, known: int) -> OwnRunsScore | None:
        """What so many own runs bring, at most half of a source's; nothing of a baseline."""
        if self.widths is None:
            return None
        residuals = np.log(self.measured / self.predicted)
        return score_own_runs(self.runs, self.fits, residuals, self.widths, known)

    def by(self, key: Callable[[PublishedRun], str]) -> dict[str, Errors]:
        """Errors of each group of runs, the largest first."""
        rows: dict[str, list[int]] = defaultdict(list)
        for index, run in enumerate(self.runs):
            rows[key(run)].append(index)
        found = {name: self.part(indices).errors() for name, indices in rows.items()}
        kept = [(name, errors) for name, errors in found.items() if errors is not None]
        return dict(sorted(kept, key=lambda item: -item[1].median_ape))

    def what_if(self) -> WhatIf | None:
        """Each run of a group predicted from each other one."""
        pairs = pairs_of(self.runs)
        if not len(pairs.known):
            return None
        known, other = pairs.known, pairs.other
        missed = np.log(self.measured[known] / self.likeliest[known])
        shift, widths = missed, None
        if self.widths is not None:
            fits = [self.fits[one] for one in known]
            change, moved = (change_of_pairs(self.runs, self.parts, pairs, recomputed) for recomputed in (True, False))
            steps = zip(fits, missed, moved, strict=True)
            shift = np.array([float(fit.residual_transfer.expected(residual, much)) for fit, residual, much in steps])
            mixtures = [self.runs[one].architecture.is_moe for one in known]
            each = zip(fits, mixtures, change, strict=True)
            widths = np.array([fit.anchored_widths.of(mixture).at(moved) for fit, mixture, moved in each])
        sources = [self.runs[index].source for index in known]
        errors = score_errors(self.likeliest[other] * np.exp(shift), self.measured[other], sources, widths)
        return WhatIf(pairs=len(known), **errors.model_dump()) if errors else None

    def problems(self) -> list[TuningProblem]:
        """Groups with two or more shardings; runs of one plan are one sharding, with their mean."""
        found = []
        for members in grouped(self.runs):
            plans: dict[str, list[int]] = defaultdict(list)
            for index in members:
                plans[str(self.runs[index].plan)].append(index)
            if len(plans) > 1:
                rows = list(plans.values())
                predicted = np.array([self.likeliest[own].mean() for own in rows])
                measured = np.array([self.measured[own].mean() for own in rows])
                fit, plans_of = self.fits[members[0]], [self.runs[own[0]].plan for own in rows]
                parts = np.array([self.parts[own].mean(axis=0) for own in rows])
                found.append(
                    TuningProblem(
                        self.runs[members[0]].source, plans_of, predicted, measured, fit.residual_transfer,
                        fit.anchored_widths.of(self.runs[members[0]].architecture.is_moe), fit.residual_kernel, parts,
                    )
                )  # fmt: skip
        return found

    def ranking(self) -> Ranking:
        """Over groups with two or more shardings."""
        return score_ranking([(problem.predicted, problem.measured) for problem in self.problems()])

    def advice(self) -> Advice:
        """Over groups in which settings beside the mesh vary."""
        return score_advice(self.problems())

    def loop(self) -> Loop:
        """Over groups with four or more shardings."""
        return score_loop(self.problems())
