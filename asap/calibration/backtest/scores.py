"""The measures of a backtest: errors, coverage, ranking and memory. Fractions, not percent."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from asap.calibration.dataset.runs import PublishedRun
from asap.calibration.fit.intervals import macro_median, source_weights, weighted_quantile
from asap.calibration.fit.predicted_runs import allocator_of, reserved_bytes, stacked
from asap.prediction.uncertainty.calibration import Fit

Vector = NDArray[np.float64]

CLOSE = 0.02  # of the fastest of a group: two short runs differ by 1 % each
TOP = 3  # proposals that are shown


class Errors(BaseModel):
    """Absolute percentage errors, as fractions."""

    model_config = ConfigDict(frozen=True)

    rows: int
    macro_median_ape: float = Field(description="mean over sources of the source's own median")
    median_ape: float
    mape: float
    p90_ape: float
    coverage_90: float | None = Field(default=None, description="share inside the 90 % interval")
    half_width: float | None = Field(default=None, description="median of the interval of ln(measured / predicted)")


class WhatIf(Errors):
    """Errors over ordered pairs: one run known, the other predicted from it."""

    pairs: int


class Ranking(BaseModel):
    """How well the best plan of a group is found, over groups of two or more shardings."""

    model_config = ConfigDict(frozen=True)

    groups: int
    top1_within_2pct: float | None = None
    best_in_top3: float | None = None
    mean_regret: float | None = None
    regret_after_three: float | None = Field(default=None, description="mean, if our first three are measured")
    kendall_tau: float | None = Field(
        default=None, description="mean of Kendall's tau-b; 0 where all times of a group are equal"
    )


class MemoryScore(BaseModel):
    """Out-of-memory recall, and acceptance of runs that fitted."""

    model_config = ConfigDict(frozen=True)

    oom_rows: int
    ok_rows: int
    oom_recall: float | None = None
    ok_accepted: float | None = None


def score_errors(
    predicted: Vector, measured: Vector, sources: Sequence[str], half_widths: Vector | None = None
) -> Errors | None:
    """Errors of predictions; ``None`` where there are none.

    Args:
        predicted: seconds.
        measured: seconds.
        sources: of each row.
        half_widths: of the interval of ln(measured / predicted).
    """
    if not len(predicted):
        return None
    ape = np.abs(predicted / measured - 1)
    covered = width = None
    if half_widths is not None:
        width = _round(np.median(half_widths))
        covered = _round((np.abs(np.log(measured / predicted)) <= half_widths).mean())
    return Errors(
        rows=len(ape),
        macro_median_ape=_round(macro_median(ape, sources)),
        median_ape=_round(np.median(ape)),
        mape=_round(ape.mean()),
        p90_ape=_round(np.quantile(ape, 0.9)),
        coverage_90=covered,
        half_width=width,
    )


def pooled_quantile(values: Vector, sources: Sequence[str], share: float) -> float:
    """A quantile over all rows, every source weighing the same."""
    return _round(weighted_quantile(values, source_weights(sources), share))


def score_ranking(groups: Sequence[tuple[Vector, Vector]]) -> Ranking:
    """Ranking over groups, each as predicted and measured seconds of its shardings."""
    if not groups:
        return Ranking(groups=0)
    from scipy.stats import kendalltau

    close, top, regret, tau, after = [], [], [], [], []
    for predicted, measured in groups:
        order, best = np.argsort(predicted, kind="stable"), measured.min()
        lost = measured[order[0]] / best - 1
        close.append(lost <= CLOSE)
        top.append(bool((measured[order[:TOP]] <= best).any()))
        regret.append(lost)
        after.append(measured[order[:TOP]].min() / best - 1)
        tau.append(kendalltau(predicted, measured)[0])
    return Ranking(
        groups=len(groups),
        top1_within_2pct=_round(np.mean(close)),
        best_in_top3=_round(np.mean(top)),
        mean_regret=_round(np.mean(regret)),
        regret_after_three=_round(np.mean(after)),
        kendall_tau=_round(np.mean(np.nan_to_num(tau))),
    )


def score_memory(fits: NDArray[np.bool_], out_of_memory: NDArray[np.bool_]) -> MemoryScore:
    """Recall of the runs that ran out of memory, and acceptance of those that fitted."""
    return MemoryScore(
        oom_rows=int(out_of_memory.sum()),
        ok_rows=int((~out_of_memory).sum()),
        oom_recall=_round((~fits[out_of_memory]).mean()) if out_of_memory.any() else None,
        ok_accepted=_round(fits[~out_of_memory].mean()) if (~out_of_memory).any() else None,
    )


def _round(value: float | np.floating) -> float:
    return round(float(value), 4)


CLASSES = ((0.0, 0.3), (0.3, 0.7), (0.7, 0.9), (0.9, 0.99), (0.99, 1.0))
"""Of odds, narrow where plans are proposed. Judgement: rows of a table."""


class Reliability(BaseModel):
    """Runs of one allocator that were said to fit with a probability in one class."""

    model_config = ConfigDict(frozen=True)

    allocator: str
    low: float
    high: float
    runs: int
    sources: int
    said: float = Field(description="mean of the probabilities")
    fitted: float = Field(description="share that fitted")


def reliability(runs: Sequence[PublishedRun], fits: Sequence[Fit]) -> tuple[Reliability, ...]:
    """A row for each allocator and class of probability in which there are runs.

    Args:
        runs: that fitted or ran out of memory.
        fits: of each, one that never saw its source.
    """
    reserved, limit = reserved_bytes(runs, fits), np.asarray(stacked(runs).hardware.hbm_bytes)
    kinds, names = [allocator_of(run) for run in runs], np.array([run.source for run in runs])
    said = np.array(
        [
            float(fit.overhead(kind).probability_fits(held, capacity))
            for fit, kind, held, capacity in zip(fits, kinds, reserved, limit, strict=True)
        ]
    )
    died = np.array([run.out_of_memory for run in runs])
    found = []
    for kind in sorted(set(kinds)):
        own = np.array([each == kind for each in kinds])
        for low, high in CLASSES:
            rows = np.flatnonzero(own & (said >= low) & ((said < high) | (high == 1.0)))
            if len(rows):
                found.append(_row(kind, low, high, said[rows], died[rows], names[rows]))
    return tuple(found)


def _row(kind: str, low: float, high: float, said: np.ndarray, died: np.ndarray, names: np.ndarray) -> Reliability:
    return Reliability(
        allocator=kind,
        low=low,
        high=high,
        runs=len(said),
        sources=len(set(names)),
        said=round(float(said.mean()), 3),
        fitted=round(float(1 - died.mean()), 3),
    )
