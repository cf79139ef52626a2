"""Step times after what was measured: the model as prior, its residuals carried over to configurations near by.

Residuals ``ln(measured / modelled)`` are a Gaussian process (kriging: Cressie, *Statistics for Spatial Data*, section
3.2). It adds up a part for each thing that may differ, such as an axis or rematerialisation, which all configurations
share that have it alike, and one for all things together (additive kernels: Duvenaud, Nickisch & Rasmussen 2011); each
falls with the distance in it. Range and variance come from the calibration: the shares of a residual that published
pairs of runs had in common, and the error of the anchored step. Beyond the largest usual residual it belongs to the
machine and shifts all alike, as in :class:`ResidualTransfer`. Where residuals are larger or scatter more than in the
calibration, the variance grows with them: an inverse-gamma prior on it (Gelman et al., *Bayesian Data Analysis*,
section 3.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from asap.optimize.proposers.prior import Array, Prior
from asap.optimize.results import Result
from asap.prediction.uncertainty.calibration import Fit
from asap.proposals.selection.doubt import Z_90

WEIGHT = 4.0
"""Residuals that the calibrated variance counts as, against those of the session."""
_LEAST_NOISE = 1e-3


@dataclass(frozen=True)
class Kernel:
    """How residuals go together: their standard deviation, how far it takes them to part, and what all share.

    Args:
        deviation: of a residual.
        reach: doublings at which the correlation has fallen to 1/e.
        limit: residual within which nine in ten runs lie.
    """

    deviation: float
    reach: float
    limit: float

    @classmethod
    def of(cls, fit: Fit) -> "Kernel":
        """As published runs have it."""
        transfer, edges = fit.residual_transfer, (0.0, *fit.residual_transfer.edges)
        middles = [(low + high) / 2 for low, high in pairwise(edges)]
        shares = [max(share, 1e-3) for share in transfer.shares[: len(middles)]]
        reach = float(np.median([middle / -np.log(share) for middle, share in zip(middles, shares, strict=True)]))
        return cls(fit.step_interval.narrowest / Z_90, reach, transfer.limit)

    def common(self, residual: float) -> float:
        """What of a residual belongs to the machine: none within the limit, all from twice the limit on."""
        return residual * float(np.clip(abs(residual) / self.limit - 1, 0.0, 1.0))

    def correlation(self, apart: Array) -> Array:
        """Of residuals of configurations that differ by ``apart``, of shape (..., things, n)."""
        parts = np.exp(-apart / self.reach)
        return (parts.sum(axis=-2) + parts.prod(axis=-2)) / (apart.shape[-2] + 1)

    def nearness(self, apart: Array) -> Array:
        """From 1 for the same configuration to 0 far away, of the same shape as :meth:`correlation`."""
        return np.exp(-apart.sum(axis=-2) / self.reach)


@dataclass(frozen=True)
class StepBelief:
    """Mean and standard deviation of ``ln(step time)`` of every configuration of a prior."""

    mean: Array
    deviation: Array


def believe(prior: Prior, kernel: Kernel, found: Sequence[Result], apart: Sequence[Array]) -> StepBelief:
    """What to believe after measurements.

    Args:
        prior: the model's word.
        kernel: how residuals go together.
        found: what was measured, of configurations of the prior.
        apart: each of these and all configurations, as :attr:`Prior.apart` has it.
    """
    if not found:
        return StepBelief(prior.log_time, np.full(len(prior.log_time), kernel.deviation))
    rows = [prior.index[result.configuration] for result in found]
    residuals = np.array([np.log(result.step_time_s) for result in found]) - prior.log_time[rows]
    typical = float(np.median(residuals))
    shift, unusual = kernel.common(typical), typical * Z_90 / kernel.limit
    rest = residuals - shift
    to_all = kernel.correlation(np.stack(apart))
    noise = np.array([max(result.log_error, _LEAST_NOISE) for result in found])
    among = to_all[:, rows] + np.diag((noise / kernel.deviation) ** 2)
    solved = np.linalg.solve(among, np.column_stack([rest, to_all]))
    spread = (WEIGHT + unusual**2 + rest @ solved[:, 0] / kernel.deviation**2) / (WEIGHT + 1 + len(found))
    left = np.clip(1.0 - np.einsum("ij,ij->j", to_all, solved[:, 1:]), 0.0, 1.0)
    deviation = kernel.deviation * np.sqrt(spread * left)
    return StepBelief(prior.log_time + shift + to_all.T @ solved[:, 0], deviation)
