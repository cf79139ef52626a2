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
from asap.prediction.uncertainty.own_runs import Likeness, Sharing
from asap.prediction.uncertainty.residual_kernel import PlanWidths, Widths
from asap.prediction.uncertainty.step_interval import StepInterval

Vector = NDArray[np.float64]

COVERAGE = 0.9  # of what is called a 90 % interval
WEIGHT_OF_A_SOURCE = 3.0  # independent residuals that a source counts as, against the priors; judgement: widths
SPREADS = {
    # e-folds that a doubt adds, half-normal priors
    "any": 0.1, "distance": 0.1, "chip": 0.3, "vendor": 0.3, "framework": 0.3, "together": 0.3, "code": 0.2,
    "precision": 0.3, "network": 0.5, "launches": 0.6, "experts": 0.2,
}  # fmt: skip
LEAST = {"any": 0.05, "distance": 0.1} | dict.fromkeys(("chip", "vendor", "framework", "together", "precision"), 0.3)
"""What the new adds at least: too few sources are new in each way to learn that it adds little. Of 0.1 to 0.6 these are
among the best by the interval score over sources, each with intervals that have not seen it."""
SOURCES_OF_A_CELL = 2.0
"""Sources that a cell has to have until its own scatter counts as much as that of all. Of 1, 2, 3 and 6 it has the best
interval score over sources when they were first seen (1.45, 92 % covered; 1.52 without cells)."""

PLAN_SPREAD, LEAST_PLAN_SPREAD = 0.3, 0.01
"""E-folds that a whole step that changes adds: half-normal prior, and least. Judgement: widths of few sources."""
NO_WIDTHS = PlanWidths(dense=Widths(least=0.0, whole=0.0), mixture=Widths(least=0.0, whole=0.0))  # where the fit starts


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
    spread = StepInterval(spreads=rounded, cells=_cells(size / found.scale(dict(doubts)), doubts, sources))
    quantile = conformal_quantile(size / spread.scale(dict(doubts)), sources)
    return spread.model_copy(update={"quantile": round(quantile, 4)})


def _cells(scores: Vector, doubts: Mapping[str, Vector], sources: Sequence[str]) -> dict[str, float]:
    """How widely runs of each cell scatter over all runs, every source weighing the same; a cell of few sources is
    taken to scatter like all."""
    names = np.array(sources)
    found: dict[str, list[float]] = {}
    for cell in (name for name in doubts if name not in (*SPREADS, "unstated")):
        inside = doubts[cell] > 0
        found[cell] = [float(scores[inside & (names == name)].mean()) for name in sorted({*names[inside]})]
    usual = float(np.mean([size for sizes in found.values() for size in sizes] or [0.0]))
    if not usual:
        return {}
    return {
        cell: round((SOURCES_OF_A_CELL + sum(sizes) / usual) / (SOURCES_OF_A_CELL + len(sizes)), 4)
        for cell, sizes in found.items()
        if sizes
    }


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


MOST_KNOWN = (1, 3, 10, 1000)
"""Runs that are given of a source, at most half of it. Judgement: what own runs bring."""


def fit_sharing(residuals: Vector, likeness: Sequence[Likeness], sources: Sequence[str]) -> Sharing:
    """The shares of variance that pairs of runs of a source have in common, every source weighing the same.

    Args:
        residuals: ln(measured / predicted) in half-widths, of runs whose source the fit had not seen.
        likeness: of the same runs.
        sources: of the same runs.
    """
    names = np.array(sources)
    rows: list[list[int]] = [np.flatnonzero(names == name).tolist() for name in sorted({*sources})]
    found = [_shares(residuals[own], [likeness[row] for row in own]) for own in rows]
    stack, model, setting = (max(float(np.nanmean([each[place] for each in found])), 0.0) for place in range(3))
    fitted = Sharing(
        stack=round(min(stack, model, setting), 4),
        model=round(min(model, setting), 4),
        setting=round(setting, 4),
        mean_square=round(float(np.mean([np.mean(residuals[own] ** 2) for own in rows])), 4),
    )
    widest = max(_quantile(residuals, likeness, rows, fitted, most) for most in MOST_KNOWN)
    return fitted.model_copy(update={"quantile": round(widest, 4)})


def _quantile(
    residuals: Vector, likeness: Sequence[Likeness], rows: Sequence[list[int]], sharing: Sharing, most_known: int
) -> float:
    """What the interval has to be multiplied by where so many runs of a source are given, at most."""
    scores, of = list[float](), list[str]()
    for source, own in enumerate(rows):
        other, shift, scale = from_half(residuals[own], [likeness[row] for row in own], sharing, most_known)
        scores += (np.abs(residuals[own][other] - shift) / scale).tolist()
        of += [str(source)] * len(other)
    return conformal_quantile(np.array(scores), of)


def from_half(
    residuals: Vector, likeness: Sequence[Likeness], sharing: Sharing, most_known: int
) -> tuple[NDArray[np.int64], Vector, Vector]:
    """Give half of a source's runs, predict the others, and the other way round.

    Args:
        residuals: of the source's runs, in half-widths.
        likeness: of the same runs.
        sharing: how they go together.
        most_known: runs that are given, at most.

    Returns:
        Of each run that is predicted from a known one of its stack: row, expected residual, and scale of the interval.
    """
    order = np.random.default_rng(0).permutation(len(residuals))
    rows, shifts, scales = list[int](), list[float](), list[float]()
    for known, other in ((order[::2], order[1::2]), (order[1::2], order[::2])):
        by_stack: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for place, chosen in enumerate((known[:most_known], other)):
            for row in chosen:
                by_stack[likeness[row].stack][place].append(int(row))
        for given, wanted in by_stack.values():
            if given and wanted:
                known, unknown = ([likeness[row] for row in chosen] for chosen in (given, wanted))
                shift, scale = sharing.krige(residuals[given], known, unknown)
                rows += wanted
                shifts += shift.tolist()
                scales += scale.tolist()
    return np.array(rows, dtype=int), np.array(shifts), np.array(scales)


def _shares(residuals: Vector, likeness: Sequence[Likeness]) -> tuple[float, float, float]:
    """Mean product of two residuals over their mean square: of two models of a stack, of two settings of a model, and
    of the same setting."""
    products = np.outer(residuals, residuals) / np.mean(residuals**2)
    stack, model, setting = (
        np.equal.outer(names := np.array([getattr(each, name) for each in likeness]), names)
        for name in ("stack", "model", "setting")
    )
    itself = np.eye(len(residuals), dtype=bool)
    return _mean(products[stack & ~model]), _mean(products[model & ~setting]), _mean(products[setting & ~itself])


def _mean(values: Vector) -> float:
    return float(values.mean()) if values.size else float("nan")
