"""Intervals from residuals of left-out sources: conformal prediction for hierarchical data (arXiv:2306.06342).

Runs of one source err together, so sources are what is drawn, not rows: every source weighs the same, and the quantile
over K of them is taken at ``COVERAGE (K + 1) / K``, which covers a further source on average as often as it says. What
is harder to predict gets a wider interval: residuals are divided by a scale before the quantile is taken.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.prediction.uncertainty.plan_widths import PlanWidths, Widths
from asap.prediction.uncertainty.step_interval import StepInterval

Vector = NDArray[np.float64]

COVERAGE = 0.9
WEIGHT_OF_A_SOURCE = 3.0  # independent residuals that a source counts as, against the priors
SPREADS = {
    # e-folds that a doubt adds, half-normal priors
    "any": 0.1, "distance": 0.1, "chip": 0.3, "vendor": 0.3, "framework": 0.3, "code": 0.2, "precision": 0.3,
    "communication": 0.3, "network": 0.5, "launches": 0.6, "experts": 0.2,
}  # fmt: skip
LEAST = {
    "any": 0.05, "distance": 0.1, "chip": 0.3, "vendor": 0.3, "framework": 0.3, "precision": 0.3, "launches": 0.6,
}  # fmt: skip
"""What the new adds at least, and launches of the host: too few sources are new in each way, or decided by launches, to
learn that it adds little. Of 0.1 to 0.6 for the new and 0.3 to 1.3 for launches these are among the best by the
interval score over sources, each with intervals that have not seen it."""


PLAN_SPREAD, LEAST_PLAN_SPREAD = 0.3, 0.01
"""E-folds that a whole step that changes adds: half-normal prior, and least."""
NO_WIDTHS = PlanWidths(dense=Widths(least=0.0, whole=0.0), mixture=Widths(least=0.0, whole=0.0))


def source_weights(sources: Sequence[str]) -> Vector:
    """Weight of each residual: those of a source add up to one."""
    counts = Counter(sources)
    return np.array([1 / counts[source] for source in sources])


def conformal_quantile(scores: Vector, sources: Sequence[str]) -> float:
    """The score below which a run of a further source lies as often as :data:`COVERAGE`, on average over sources."""
    count = len(set(sources))
    return weighted_quantile(scores, source_weights(sources), min(COVERAGE * (count + 1) / count, 1.0))


def fit_step_interval(residuals: Vector, doubts: Mapping[str, Vector], sources: Sequence[str]) -> StepInterval:
    """How much each doubt adds, by the likelihood of double-exponential residuals, and the quantile over sources.

    Args:
        residuals: ln(measured / predicted) of runs whose source the fit had not seen.
        doubts: of the same runs.
        sources: of the same runs.
    """
    from scipy.optimize import minimize

    names, weights = tuple(SPREADS), WEIGHT_OF_A_SOURCE * source_weights(sources)
    priors, size = np.array([SPREADS[name] for name in names]), np.abs(residuals)

    def interval(theta: Vector) -> StepInterval:
        return StepInterval(spreads=dict(zip(names, theta.tolist(), strict=True)))

    def loss(theta: Vector) -> float:
        scale = interval(theta).scale(dict(doubts))
        return float((weights * (np.log(scale) + np.sqrt(2) * size / scale)).sum() + ((theta / priors) ** 2).sum() / 2)

    bounds = [(LEAST.get(name, 0.0), None) for name in names]
    found = interval(minimize(loss, priors / 2, bounds=bounds, method="L-BFGS-B").x)
    rounded = {name: round(value, 4) for name, value in found.spreads.items()}
    quantile = conformal_quantile(size / found.scale(dict(doubts)), sources)
    return StepInterval(spreads=rounded, quantile=round(quantile, 4))


def fit_plan_widths(residuals: Vector, change: Vector, mixture: Vector, sources: Sequence[str]) -> PlanWidths:
    """How the square of a residual grows with how much of the step changes, faster for mixtures of experts, by the
    likelihood of double-exponential residuals, and the quantile over sources.

    Args:
        residuals: ln(measured / predicted) of runs that were predicted from another one.
        change: how much of the step changes between them.
        mixture: 1 for mixtures of experts, else 0.
        sources: of the pairs.
    """
    from scipy.optimize import minimize

    if not len(residuals):
        return NO_WIDTHS
    weights, size = WEIGHT_OF_A_SOURCE * source_weights(sources), np.abs(residuals)
    grown = np.stack([change, change * mixture], axis=1)

    def scale(theta: Vector) -> Vector:
        return np.sqrt(STEP_TIME_VARIATION**2 + grown @ np.square(theta))

    def loss(theta: Vector) -> float:
        expected = scale(theta)
        likelihood = np.log(expected) + np.sqrt(2) * size / expected
        return float((weights * likelihood).sum() + np.square(theta / PLAN_SPREAD).sum() / 2)

    bounds = [(LEAST_PLAN_SPREAD, None), (0.0, None)]
    found = minimize(loss, np.full(2, PLAN_SPREAD / 2), bounds=bounds, method="L-BFGS-B").x
    quantile = conformal_quantile(size / scale(found), sources)
    least, dense, more = (round(float(value), 4) for value in quantile * np.array([STEP_TIME_VARIATION, *found]))
    mixed = round(float(np.hypot(dense, more)), 4)
    return PlanWidths(dense=Widths(least=least, whole=dense), mixture=Widths(least=least, whole=mixed))


def weighted_quantile(values: Vector, weights: Vector, share: float) -> float:
    """The smallest value below which at least ``share`` of the weight lies."""
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(cumulative, share - 1e-12)), len(values) - 1)])


def macro_median(errors: Vector, sources: Sequence[str]) -> float:
    """Mean over sources of each source's median."""
    by_source: dict[str, list[float]] = defaultdict(list)
    for error, source in zip(errors, sources, strict=True):
        by_source[source].append(float(error))
    return float(np.mean([np.median(found) for found in by_source.values()]))
