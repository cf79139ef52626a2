"""How residuals of step times of one model and machine go together, from one plan to another.

A Gaussian process (kriging: Cressie, *Statistics for Spatial Data*, section 3.2). It adds up a part for each thing that
may differ, such as an axis or rematerialisation, which all plans share that have it alike, one for all things together
(additive kernels: Duvenaud, Nickisch & Rasmussen 2011), and what each plan has of its own. Beyond the largest usual
residual it belongs to the machine and shifts all alike, as in :class:`ResidualTransfer`.

That is one view of it. The other adds that the model misses each part of a step by a factor of its own, so plans share
a residual in proportion to the shares that the part has of their steps. It says much where the model is nearly right,
and nothing of a machine that the model does not know.
"""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator

from asap.prediction.step_model.step_parts import KINDS

PRIOR_WEIGHT = 4.0
"""Residuals that the published variance counts as, against those of one machine or team: the inverse-gamma prior on it
(Gelman et al., *Bayesian Data Analysis*, section 3.2)."""

Array = NDArray[np.float64]


class PlanKernel(BaseModel):
    """Standard deviations of ``ln(measured / modelled)``, and how far it takes residuals to part."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    deviation: float = Field(gt=0, description="of what plans share")
    reach: float = Field(gt=0, description="doublings at which the correlation has fallen to 1/e")
    own: float = Field(default=0.0, ge=0, description="standard deviation of what a plan shares with no other")

    def correlation(self, apart: Array) -> Array:
        """Of what plans share that differ by ``apart`` doublings, of shape (..., things, n)."""
        parts = np.exp(-apart / self.reach)
        return (parts.sum(axis=-2) + parts.prod(axis=-2)) / (apart.shape[-2] + 1)

    def shared(self, apart: Array, shares: Array, others: Array) -> Array:
        """Covariance of what plans share with others.

        Args:
            apart: doublings between them, of shape (plans, things, others).
            shares: of the parts in the steps of the plans, of shape (plans, parts).
            others: of the others, of shape (others, parts).
        """
        del shares, others
        return self.deviation**2 * self.correlation(apart)

    def variance(self, shares: Array) -> Array:
        """Of the whole residual of each plan, of shape (plans,)."""
        return np.full(len(shares), self.deviation**2 + self.own**2)


class PartKernel(PlanKernel):
    """The view by part, and how likely it is before anything was measured."""

    parts: Mapping[str, float] = Field(description="kind of part → standard deviation of what the model misses of it")
    odds: float = Field(default=0.5, gt=0, lt=1, description="probability of this view before")

    @field_validator("parts")
    @classmethod
    def _every_kind(cls, parts: Mapping[str, float]) -> Mapping[str, float]:
        if parts.keys() != {*KINDS}:
            raise ValueError(f"are of {', '.join(parts)}, not of {', '.join(dict.fromkeys(KINDS))}")
        return parts

    def shared(self, apart: Array, shares: Array, others: Array) -> Array:
        """As that of a :class:`PlanKernel`, and what the model misses of each part."""
        return super().shared(apart, shares, others) + (shares * self._variances) @ others.T

    def variance(self, shares: Array) -> Array:
        """Of the whole residual of each plan, of shape (plans,)."""
        return super().variance(shares) + np.square(shares) @ self._variances

    @property
    def _variances(self) -> Array:
        return np.array([self.parts[kind] for kind in KINDS]) ** 2


class ResidualKernel(PlanKernel):
    """The view by setting, what is usual, and the view by part."""

    limit: float = Field(default=math.inf, ge=0, description="residual within which nine in ten runs lie")
    by_part: PartKernel | None = Field(default=None, description="the view by part of the step")

    def common(self, residual: float) -> float:
        """What of a residual belongs to the machine: none within the limit, all from twice the limit on."""
        return residual * float(np.clip(abs(residual) / self.limit - 1, 0.0, 1.0))

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
