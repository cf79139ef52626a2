"""How residuals of one group of runs go together, likeliest of published groups whose source was left out.

By setting and by how much of the step changes: each view is fitted by itself to the groups of all sources but one. How
likely the view by change is before anything was measured is fitted to what both say of the sources that they have not
seen.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from asap.calibration.dataset.runs import PublishedRun
from asap.calibration.dataset.sources import grouped
from asap.calibration.fit.intervals import source_weights, weighted_quantile
from asap.plans import Plan
from asap.prediction.step_model.step_parts import change_between
from asap.prediction.uncertainty.residual_kernel import (
    ByChange,
    ResidualKernel,
    ResidualTransfer,
    View,
    log_likelihood,
    plan_distances,
)

Vector = NDArray[np.float64]
BY_CHANGE = ByChange(deviation=0.15, reach=0.4, own=0.05, common=0.1)  # where the search begins
START = ResidualKernel(deviation=0.15, reach=2.0, own=0.03, by_change=BY_CHANGE)
"""Where the search begins, by setting and by change."""
MOST_GROUPS = 30
"""Of one source, from the first on: more of them say the same. Judgement: the kernel, and the time of the fit."""
_ODDS = [percent / 100 for percent in range(2, 99)]  # every percent, of which the best is taken
_View = TypeVar("_View", bound=View)


@dataclass(frozen=True)
class ResidualGroup:
    """Runs of one model and machine under several plans.

    Args:
        source: of the runs.
        residuals: ln(measured / modelled), of shape (n,).
        apart: doublings between the plans in each thing that differs among them, of shape (n, things, n).
        change: how much of the modelled step changes between them, of shape (n, n).
    """

    source: str
    residuals: Vector
    apart: NDArray[np.float64]
    change: NDArray[np.float64]


def residual_groups(runs: Sequence[PublishedRun], residuals: Vector, parts: NDArray[np.float64]) -> list[ResidualGroup]:
    """Of each group of runs with several plans; runs of one plan count as their mean.

    Args:
        runs: published.
        residuals: of the same runs.
        parts: seconds of the parts of their modelled steps, of shape (runs, parts).
    """
    found: dict[str, list[ResidualGroup]] = defaultdict(list)
    for members in grouped(runs):
        by_plan: dict[Plan, list[int]] = defaultdict(list)
        for row in members:
            by_plan[runs[row].plan].append(row)
        own = found[runs[members[0]].source]
        if len(by_plan) > 1 and len(own) < MOST_GROUPS:
            apart = np.array([[plan_distances(one, other) for other in by_plan] for one in by_plan]).swapaxes(1, 2)
            means = np.array([residuals[rows].mean() for rows in by_plan.values()])
            columns = np.array([parts[rows].mean(axis=0) for rows in by_plan.values()]).T
            change = change_between(list(columns[:, :, None]), list(columns[:, None, :]))
            own.append(
                ResidualGroup(runs[members[0]].source, means, apart[:, apart.any(axis=(0, 2))], np.asarray(change))
            )
    return [group for groups in found.values() for group in groups]


def fit_residual_kernels(groups: Sequence[ResidualGroup]) -> dict[str | None, ResidualKernel]:
    """Of the groups of all sources (``None``), and of all but those of each.

    Args:
        groups: of published runs, predicted by fits that had not seen their source.
    """
    found: dict[str | None, ResidualKernel] = {None: (everything := fit_residual_kernel(groups))}
    for name in sorted({group.source for group in groups}):
        found[name] = fit_residual_kernel([group for group in groups if group.source != name], everything)
    return {name: _add_odds(kernel, groups, found, name) for name, kernel in found.items()}


def fit_residual_kernel(groups: Sequence[ResidualGroup], near: ResidualKernel = START) -> ResidualKernel:
    """Both views of greatest marginal likelihood, each by itself, searched from ``near`` on; their odds are even."""
    by_change = _likeliest(groups, BY_CHANGE, near.by_change or BY_CHANGE)
    return _likeliest(groups, START, near).model_copy(update={"by_change": by_change})


def likelihood_of(group: ResidualGroup, kernel: View) -> float:
    """Logarithm of that of a group's residuals, under one view."""
    shared = kernel.shared(group.change if isinstance(kernel, ByChange) else group.apart)
    return log_likelihood(group.residuals, shared + kernel.own**2 * np.eye(len(group.residuals)))


def _likeliest(groups: Sequence[ResidualGroup], start: _View, near: View) -> _View:
    from scipy.optimize import minimize

    if not groups:
        return start
    begin, first = (np.log([max(getattr(view, name), 1e-3) for name in _names(start)]) for view in (start, near))

    def loss(theta: Vector) -> float:
        kernel = _set_values(start, np.exp(np.clip(theta, -7.0, 7.0)))
        fitted = _mean_over_sources(groups, lambda group: likelihood_of(group, kernel))
        return 1e-3 * float(((theta - begin) ** 2).sum()) - fitted

    found = np.clip(minimize(loss, first, method="L-BFGS-B").x, -7.0, 7.0)
    return _set_values(start, np.round(np.exp(found), 4))


def _add_odds(
    kernel: ResidualKernel,
    groups: Sequence[ResidualGroup],
    without: Mapping[str | None, ResidualKernel],
    left_out: str | None,
) -> ResidualKernel:
    """With the odds of the view by change that are likeliest of groups which neither of the kernels has seen."""
    seen = [group for group in groups if group.source != left_out]
    if kernel.by_change is None or not seen:
        return kernel
    views = {id(group): _under_both(group, without[group.source]) for group in seen}

    def likelihood(odds: float) -> float:
        before = np.log([1 - odds, odds])
        return _mean_over_sources(seen, lambda group: float(np.logaddexp(*(before + views[id(group)]))))

    by_change = kernel.by_change.model_copy(update={"odds": max(_ODDS, key=likelihood)})
    return kernel.model_copy(update={"by_change": by_change})


def _under_both(group: ResidualGroup, kernel: ResidualKernel) -> Vector:
    return np.array([likelihood_of(group, view) for view in (kernel, kernel.by_change or kernel)])


def _mean_over_sources(groups: Sequence[ResidualGroup], score: Callable[[ResidualGroup], float]) -> float:
    """Mean over sources of the score of each residual."""
    scores: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    for group in groups:
        scores[group.source] += score(group)
        counts[group.source] += len(group.residuals)
    return float(np.mean([scores[source] / counts[source] for source in scores]))


def _names(kernel: View) -> list[str]:
    return ["deviation", "reach", "own", *(["common"] if isinstance(kernel, ByChange) else [])]


def _set_values(kernel: _View, values: Vector) -> _View:
    return kernel.model_copy(update=dict(zip(_names(kernel), values.tolist(), strict=True)))


COMMON = 0.9  # nine in ten residuals are smaller
NEAREST, FARTHEST = 0.01, 100.0
"""Bounds of the reach."""


def common_size(residuals: Vector, sources: Sequence[str]) -> float:
    """The size of residual that nine in ten runs stay below."""
    return round(weighted_quantile(np.abs(residuals), source_weights(sources), COMMON), 4)


def fit_residual_transfer(
    known: Vector, other: Vector, change: Vector, sources: Sequence[str], limit: float
) -> ResidualTransfer:
    """The reach that leaves the least absolute error.

    Args:
        known: residuals ln(measured / modelled) of the measured runs.
        other: of the runs that are predicted from them.
        change: how much of the step changes between them.
        sources: of the pairs.
        limit: residual beyond which the rest transfers whole.
    """
    from scipy.optimize import minimize_scalar

    if not len(known):
        return ResidualTransfer(limit=limit)
    weights = source_weights(sources)

    def transfer(log_reach: float) -> ResidualTransfer:
        return ResidualTransfer(reach=round(float(np.exp(log_reach)), 4), limit=limit)

    def loss(log_reach: float) -> float:
        return float(weights @ np.abs(other - transfer(log_reach).expected(known, change)))

    bounds = np.log((NEAREST, FARTHEST)).tolist()
    return transfer(minimize_scalar(loss, bounds=bounds, method="bounded").x)
