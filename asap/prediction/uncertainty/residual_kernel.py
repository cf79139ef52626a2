"""How residuals of step times of one model and machine go together, from one plan to another.

A Gaussian process (kriging: Cressie, *Statistics for Spatial Data*, section 3.2). It adds up a part for each thing that
may differ, such as an axis or rematerialisation, which all plans share that have it alike, one for all things together
(additive kernels: Duvenaud, Nickisch & Rasmussen 2011), and what each plan has of its own. Beyond the largest usual
residual it belongs to the machine and shifts all alike, as in :class:`ResidualTransfer`.

That is one view of it. In the other, plans share the less of a residual, the more of the modelled step changes between
them.
"""

import math
from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

COMPILED = 2.5
"""Scatter of compiled steps about the model over that of measured ones: likeliest of a dense decoder and a mixture that
were compiled under 60 and 20 configurations (``dense`` and ``moe16`` of ``scripts/optimization``)."""
PRIOR_WEIGHT = 4.0
"""Residuals that the published variance counts as, against those of one machine or team: the inverse-gamma prior on it
(Gelman et al., *Bayesian Data Analysis*, section 3.2)."""

Array = NDArray[np.float64]


class View(BaseModel, ABC):
    """Standard deviations of ``ln(measured / modelled)``, and how far it takes residuals to part."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    deviation: float = Field(gt=0, description="of what plans share that are near each other")
    reach: float = Field(gt=0, description="how far apart the correlation has fallen to 1/e")
    own: float = Field(default=0.0, ge=0, description="standard deviation of what a plan shares with no other")

    @abstractmethod
    def shared(self, apart: Array) -> Array:
        """Covariance of what plans share that lie so far apart."""

    @property
    def variance(self) -> float:
        """Of the whole residual of a plan."""
        return self.deviation**2 + self.own**2

    def scattering(self, times: float) -> Self:
        """The view of residuals that scatter so many times as widely."""
        return self.model_copy(update={"deviation": self.deviation * times, "own": self.own * times})


class ByChange(View):
    """By how much of the step changes, and how likely this view is before anything was measured."""

    common: float = Field(ge=0, description="standard deviation of what all plans share")
    odds: float = Field(default=0.5, gt=0, lt=1, description="probability of this view before")

    def shared(self, apart: Array) -> Array:
        """Of plans between which so much changes (:func:`change_between`)."""
        return self.common**2 + self.deviation**2 * np.exp(-apart / self.reach)

    @property
    def variance(self) -> float:
        """Of the whole residual of a plan."""
        return self.common**2 + self.deviation**2 + self.own**2

    def scattering(self, times: float) -> Self:
        """The view of residuals that scatter so many times as widely."""
        return super().scattering(times).model_copy(update={"common": self.common * times})


class ResidualKernel(View):
    """The view by setting, what is usual, and the view by change."""

    limit: float = Field(default=math.inf, ge=0, description="residual within which nine in ten runs lie")
    by_change: ByChange | None = Field(default=None, description="the view by how much of the step changes")

    def correlation(self, apart: Array) -> Array:
        """Of what plans share that differ by ``apart`` doublings, of shape (..., things, n)."""
        parts = np.exp(-apart / self.reach)
        return (parts.sum(axis=-2) + parts.prod(axis=-2)) / (apart.shape[-2] + 1)

    def shared(self, apart: Array) -> Array:
        """Of plans that differ by so many doublings in each thing, of shape (..., things, n)."""
        return self.deviation**2 * self.correlation(apart)

    def common(self, residual: float) -> float:
        """What of a residual belongs to the machine: none within the limit, all from twice the limit on."""
        return residual * float(np.clip(abs(residual) / self.limit - 1, 0.0, 1.0))

    def scattering(self, times: float) -> Self:
        """Both views of residuals that scatter so many times as widely; what belongs to the machine stays."""
        by_change = self.by_change.scattering(times) if self.by_change else None
        return super().scattering(times).model_copy(update={"by_change": by_change})

    def nearness(self, apart: Array) -> Array:
        """From 1 for the same plan to 0 far away, of the same shape as :meth:`correlation`."""
        return np.exp(-apart.sum(axis=-2) / self.reach)


def log_likelihood(residuals: Array, covariance: Array) -> float:
    """Of the residuals of a group. Their variance has an inverse-gamma distribution and is integrated out, which leaves
    a multivariate t distribution (Gelman et al., *Bayesian Data Analysis*, section 3.2)."""
    root, count = np.linalg.cholesky(covariance), len(residuals)
    square = float((np.linalg.solve(root, residuals) ** 2).sum())
    half = (PRIOR_WEIGHT + count) / 2
    constant = math.lgamma(half) - math.lgamma(PRIOR_WEIGHT / 2) - count / 2 * np.log(PRIOR_WEIGHT * np.pi)
    return float(constant - np.log(np.diag(root)).sum() - half * np.log1p(square / PRIOR_WEIGHT))
