"""Step times after what was measured: the model as prior, its residuals carried over to other configurations.

Residuals are seen by setting and by how much of the step changes, each view as likely as what was measured makes it
(Bayesian model averaging: Hoeting et al. 1999). Where they are larger or scatter more than published ones, the variance
grows with them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from asap.evidence.prior import Array, Prior
from asap.prediction.step_model.step_parts import change_between
from asap.prediction.uncertainty.residual_kernel import PRIOR_WEIGHT, ResidualKernel, View, log_likelihood

Z_90 = NormalDist().inv_cdf(0.95)
"""Half-width of a 90 % interval, in standard deviations."""
_LEAST_NOISE = 1e-3


@dataclass(frozen=True)
class Result:
    """A configuration that was timed.

    Args:
        configuration: its text.
        step_time_s: mean over its tries, weighted by steps.
        standard_error_s: of that mean; 0 where nothing varies.
        tries: how many timed it.
        at_most: whether the step may be shorter, as reduced effort of the compiler overstates it.
        degrees: of freedom of that error.
    """

    configuration: str
    step_time_s: float
    standard_error_s: float
    tries: int
    at_most: bool = False
    degrees: float = math.inf

    @property
    def log_error(self) -> float:
        """Standard error of ``ln(step time)``."""
        return self.standard_error_s / self.step_time_s


@dataclass(frozen=True)
class StepBelief:
    """Mean and standard deviation of ``ln(step time)`` of every configuration of a prior."""

    mean: Array
    deviation: Array


@dataclass(frozen=True)
class _Measured:
    """What was measured.

    Args:
        rows: places in the prior.
        residuals: less what the machine shifts all by.
        noise: standard deviations of the residuals.
        unusual: the median residual, in standard deviations of published ones.
    """

    rows: list[int]
    residuals: Array
    noise: Array
    unusual: float


@dataclass(frozen=True)
class _Belief:
    """Mean and variance of all residuals under one kernel, and the likelihood of those that were measured."""

    mean: Array
    variance: Array
    log_likelihood: float


def believe(prior: Prior, kernel: ResidualKernel, found: Sequence[Result], apart: Sequence[Array]) -> StepBelief:
    """What to believe after measurements.

    Args:
        prior: the model's word.
        kernel: how residuals go together.
        found: what was measured, of configurations of the prior.
        apart: each of these and all configurations, as :attr:`Prior.apart` has it.
    """
    if not found:
        return StepBelief(prior.log_time, np.full(len(prior.log_time), np.hypot(kernel.deviation, kernel.own)))
    rows = [prior.index[result.configuration] for result in found]
    residuals = np.array([np.log(result.step_time_s) for result in found]) - prior.log_time[rows]
    typical = float(np.median(residuals))
    shift, noise = kernel.common(typical), np.array([max(result.log_error, _LEAST_NOISE) for result in found])
    measured = _Measured(rows, residuals - shift, noise, typical * Z_90 / kernel.limit)
    by_setting = _seen(kernel, measured, np.stack(apart))
    if kernel.by_change is None or prior.parts is None:
        mean, variance = by_setting.mean, by_setting.variance
    else:
        by_change = _seen(kernel.by_change, measured, _changes(prior.parts, rows))
        mean, variance = _averaged(by_setting, by_change, kernel.by_change.odds)
    return StepBelief(prior.log_time + shift + mean, np.sqrt(variance))


def _changes(parts: Array, rows: list[int]) -> Array:
    """How much of the step changes between those of some rows and all, of shape (rows, n)."""
    columns = parts.T
    return np.asarray(change_between(list(columns[:, rows, None]), list(columns[:, None, :])))


def _seen(kernel: View, measured: _Measured, apart: Array) -> _Belief:
    """One view, of configurations that lie so far from all of them."""
    rows, count = measured.rows, len(measured.rows)
    to_all = kernel.shared(apart)
    to_all[np.arange(count), rows] += kernel.own**2
    among = to_all[:, rows] + np.diag(measured.noise**2)
    solved = np.linalg.solve(among, np.column_stack([measured.residuals, to_all]))
    spread = PRIOR_WEIGHT + measured.unusual**2 + measured.residuals @ solved[:, 0]
    left = np.maximum(kernel.variance - np.einsum("ij,ij->j", to_all, solved[:, 1:]), 0.0)
    return _Belief(
        mean=to_all.T @ solved[:, 0],
        variance=left * spread / (PRIOR_WEIGHT + 1 + count),
        log_likelihood=log_likelihood(measured.residuals, among),
    )


def _averaged(one: _Belief, other: _Belief, odds: float) -> tuple[Array, Array]:
    """Mean and variance of a mixture of two; ``odds`` is the probability of the other one before."""
    factor = np.exp(np.clip(one.log_likelihood - other.log_likelihood, -50.0, 50.0)) * (1 - odds) / odds
    weight = 1 / (1 + factor)
    mean = (1 - weight) * one.mean + weight * other.mean
    between = weight * (1 - weight) * np.square(one.mean - other.mean)
    return mean, (1 - weight) * one.variance + weight * other.variance + between
