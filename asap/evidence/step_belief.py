"""Step times after what was measured: the model as prior, its residuals carried over to other configurations.

Residuals are seen by setting and by how much of the step changes, each view as likely as what was measured makes it
(Bayesian model averaging: Hoeting et al. 1999). How widely they scatter is learnt, beside how much runs differ: where
the model is far off, what is measured with noise is believed more, and where it is near, less.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from asap.plans import Plan
from asap.prediction.step_model.step_parts import change_between
from asap.prediction.uncertainty.residual_kernel import (
    PRIOR_WEIGHT,
    ResidualKernel,
    View,
    distinguishing,
    plan_distances,
)

Array = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True)
class Prior:
    """Configurations that may be tried, and the model's word on each.

    Args:
        configurations: their texts, of shape (n,).
        log_time: ``ln`` of the modelled step in seconds.
        log_fill: ``ln`` of modelled HBM over that of a device; ``None`` where memory plays no part.
        effort: what a configuration has to bring to be worth its changes, in ``ln(step time)``.
        apart: doublings between one configuration and all in each thing that differs among them, of shape (things, n)
            (:func:`plans_apart`).
        refused: why a configuration cannot be launched; ``None`` if it can.
        parts: seconds that those of each step take for a sequence, or all together, of shape (n, parts)
            (:func:`~asap.prediction.step_model.step_parts.step_parts`); ``None`` where they are not known.
    """

    configurations: tuple[str, ...]
    log_time: Array
    log_fill: Array | None
    effort: Array
    apart: Callable[[int], Array]
    refused: Callable[[int], str | None] = lambda index: None
    parts: Array | None = None

    @cached_property
    def index(self) -> dict[str, int]:
        """Where each configuration stands."""
        return {configuration: index for index, configuration in enumerate(self.configurations)}


def prior_of(plans: Sequence[Plan], seconds: Sequence[float] | Array, parts: Array | None = None) -> Prior:
    """Of plans that all fit and are equally easy to try, with their modelled step times and the parts of these."""
    return Prior(
        configurations=tuple(map(str, plans)),
        log_time=np.log(seconds),
        log_fill=None,
        effort=np.zeros(len(plans)),
        apart=plans_apart(plans),
        parts=parts,
    )


def plans_apart(plans: Sequence[Plan]) -> Callable[[int], Array]:
    """How far each of some plans is from all of them, as a :class:`Prior` wants it."""
    return apart(plans, distinguishing, plan_distances)


def apart(
    items: Sequence[T], says: Callable[[T], tuple[Hashable, ...]], distances: Callable[[T, T], tuple[float, ...]]
) -> Callable[[int], Array]:
    """How far each of some configurations is from all of them, as a :class:`Prior` wants it.

    In each thing few values occur, so one is compared with one example of each value.

    Args:
        items: the configurations.
        says: what one has in each thing.
        distances: doublings between two in each thing; they depend on what :obj:`says` gives there and nothing else.
    """
    things: list[tuple[int, list[int], NDArray[np.int64]]] = []
    for thing, column in enumerate(zip(*map(says, items), strict=True)):
        number = {value: code for code, value in enumerate(dict.fromkeys(column))}
        examples = [column.index(value) for value in number]
        if any(distances(items[0], items[other])[thing] for other in examples):
            things.append((thing, examples, np.array([number[value] for value in column])))

    def from_item(place: int) -> Array:
        rows = [
            np.array([distances(items[place], items[other])[thing] for other in examples])[codes]
            for thing, examples, codes in things
        ]
        return np.array(rows, dtype=float).reshape(len(things), len(items))

    return from_item


Z_90 = NormalDist().inv_cdf(0.95)
"""Half-width of a 90 % interval, in standard deviations."""
_LEAST_NOISE = 1e-3  # deviation of ln(step) of a measurement, at least; judgement: other plans next to nothing
_SCALES = np.geomspace(0.05, 100.0, 24)
"""Of the variance, over that of published residuals: on it lies an inverse-gamma distribution."""


@dataclass(frozen=True)
class Result:
    """A configuration that was timed.

    Args:
        configuration: its text.
        step_time_s: mean over its tries, weighted by steps.
        standard_error_s: of that mean; 0 where nothing varies.
        tries: how many timed it.
        at_most: whether the step may be shorter, as reduced effort of the compiler overstates it.
        half: half-width of its 90 % interval, over that error.
    """

    configuration: str
    step_time_s: float
    standard_error_s: float
    tries: int
    at_most: bool = False
    half: float = Z_90

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
    """One view, of configurations that lie so far from all of them.

    In the eigenvectors of the covariance in units of the noise, no scale of the variance costs a solution of its own.
    """
    from scipy.special import logsumexp

    rows, count = measured.rows, len(measured.rows)
    to_all = kernel.shared(apart)
    to_all[np.arange(count), rows] += kernel.own**2
    by_noise = to_all / measured.noise[:, None]
    values, turned = np.linalg.eigh(by_noise[:, rows] / measured.noise)
    by_noise, residuals = turned.T @ by_noise, turned.T @ (measured.residuals / measured.noise)
    held = _SCALES[:, None] * np.maximum(values, 0.0) + 1
    before = -(PRIOR_WEIGHT + 1) / 2 * np.log(_SCALES) - (PRIOR_WEIGHT + measured.unusual**2) / 2 / _SCALES
    likelihood = before - logsumexp(before) - (np.log(held) + residuals**2 / held).sum(axis=1) / 2
    log_likelihood = float(logsumexp(likelihood))
    weight = np.exp(likelihood - log_likelihood)
    means = _SCALES[:, None] * ((residuals / held) @ by_noise)
    left = _SCALES[:, None] * (kernel.variance - _SCALES[:, None] * ((1 / held) @ by_noise**2))
    mean = weight @ means
    between = weight @ (means - mean) ** 2
    return _Belief(mean, 1 / (weight @ (1 / np.maximum(left, _LEAST_NOISE**4))) + between, log_likelihood)


def _averaged(one: _Belief, other: _Belief, odds: float) -> tuple[Array, Array]:
    """Mean and variance of a mixture of two; ``odds`` is the probability of the other one before."""
    factor = np.exp(np.clip(one.log_likelihood - other.log_likelihood, -50.0, 50.0)) * (1 - odds) / odds
    weight = 1 / (1 + factor)
    mean = (1 - weight) * one.mean + weight * other.mean
    between = weight * (1 - weight) * np.square(one.mean - other.mean)
    return mean, (1 - weight) * one.variance + weight * other.variance + between
