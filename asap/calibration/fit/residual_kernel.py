"""How residuals of one group of runs go together, likeliest of published groups whose source was left out."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from asap.calibration.dataset.pairs import grouped
from asap.calibration.dataset.runs import PublishedRun
from asap.plans import Plan
from asap.prediction.uncertainty.residual_kernel import PRIOR_WEIGHT, ResidualKernel
from asap.prediction.uncertainty.residual_transfer import plan_distances

Vector = NDArray[np.float64]
START = ResidualKernel(deviation=0.15, reach=2.0, own=0.03)
"""Where the search begins."""
MOST_GROUPS = 30
"""Of one source, from the first on: more of them say the same."""


@dataclass(frozen=True)
class ResidualGroup:
    """Runs of one model and machine under several plans.

    Args:
        source: of the runs.
        residuals: ln(measured / modelled), of shape (n,).
        apart: doublings between the plans in each thing that differs among them, of shape (n, things, n).
    """

    source: str
    residuals: Vector
    apart: NDArray[np.float64]


def residual_groups(runs: Sequence[PublishedRun], residuals: Vector) -> list[ResidualGroup]:
    """Of each group of runs with several plans; runs of one plan count as their mean.

    Args:
        runs: published.
        residuals: of the same runs.
    """
    found = []
    for members in grouped(runs):
        by_plan: dict[Plan, list[int]] = defaultdict(list)
        for row in members:
            by_plan[runs[row].plan].append(row)
        if len(by_plan) > 1:
            apart = np.array([[plan_distances(one, other) for other in by_plan] for one in by_plan]).swapaxes(1, 2)
            means = np.array([residuals[rows].mean() for rows in by_plan.values()])
            found.append(ResidualGroup(runs[members[0]].source, means, apart[:, apart.any(axis=(0, 2))]))
    return found


def fit_residual_kernel(groups: Sequence[ResidualGroup], limit: float) -> ResidualKernel:
    """The kernel of greatest marginal likelihood, every source weighing the same.

    The variance of a group has an inverse-gamma distribution, so its residuals have a multivariate t distribution
    (Gelman et al., *Bayesian Data Analysis*, section 3.2).

    Args:
        groups: of published runs, predicted by fits that had not seen their source.
        limit: residual within which nine in ten runs lie.
    """
    from scipy.optimize import minimize

    by_source: dict[str, list[ResidualGroup]] = defaultdict(list)
    for group in groups:
        if len(by_source[group.source]) < MOST_GROUPS:
            by_source[group.source].append(group)
    if not by_source:
        return START.model_copy(update={"limit": limit})
    begin = np.log([START.deviation, START.reach, START.own])

    def loss(theta: Vector) -> float:
        kernel = _kernel(theta)
        means = [
            sum(log_likelihood(group, kernel) for group in own) / sum(len(group.residuals) for group in own)
            for own in by_source.values()
        ]
        return -float(np.mean(means)) + 1e-3 * float(((theta - begin) ** 2).sum())

    found = _kernel(minimize(loss, begin, method="L-BFGS-B").x)
    return ResidualKernel(
        deviation=round(found.deviation, 4), reach=round(found.reach, 4), own=round(found.own, 4), limit=limit
    )


def log_likelihood(group: ResidualGroup, kernel: ResidualKernel) -> float:
    """Of the residuals of a group; their variance is integrated out."""
    count = len(group.residuals)
    shared, own = kernel.deviation**2, kernel.own**2
    root = np.linalg.cholesky(shared * kernel.correlation(group.apart) + own * np.eye(count))
    square = float((np.linalg.solve(root, group.residuals) ** 2).sum())
    half = (PRIOR_WEIGHT + count) / 2
    constant = lgamma(half) - lgamma(PRIOR_WEIGHT / 2) - count / 2 * np.log(PRIOR_WEIGHT * np.pi)
    return float(constant - np.log(np.diag(root)).sum() - half * np.log1p(square / PRIOR_WEIGHT))


def _kernel(theta: Vector) -> ResidualKernel:
    deviation, reach, own = np.exp(np.clip(theta, -7.0, 7.0)).tolist()
    return ResidualKernel(deviation=deviation, reach=reach, own=own)
