"""How residuals of step times of one model and machine go together, from one plan to another.

A Gaussian process (kriging: Cressie, *Statistics for Spatial Data*, section 3.2). It adds up a part for each thing that
may differ, such as an axis or rematerialisation, which all plans share that have it alike, one for all things together
(additive kernels: Duvenaud, Nickisch & Rasmussen 2011), and what each plan has of its own. Beyond the largest usual
residual it belongs to the machine and shifts all alike, as in :class:`ResidualTransfer`.
"""

import math

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

PRIOR_WEIGHT = 4.0
"""Residuals that the published variance counts as, against those of one machine or team: the inverse-gamma prior on it
(Gelman et al., *Bayesian Data Analysis*, section 3.2)."""


class ResidualKernel(BaseModel):
    """Standard deviations of ``ln(measured / modelled)``, and how far it takes residuals to part."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    deviation: float = Field(gt=0, description="of what plans share")
    reach: float = Field(gt=0, description="doublings at which the correlation has fallen to 1/e")
    own: float = Field(default=0.0, ge=0, description="standard deviation of what a plan shares with no other")
    limit: float = Field(default=math.inf, ge=0, description="residual within which nine in ten runs lie")

    def common(self, residual: float) -> float:
        """What of a residual belongs to the machine: none within the limit, all from twice the limit on."""
        return residual * float(np.clip(abs(residual) / self.limit - 1, 0.0, 1.0))

    def correlation(self, apart: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of what plans share that differ by ``apart`` doublings, of shape (..., things, n)."""
        parts = np.exp(-apart / self.reach)
        return (parts.sum(axis=-2) + parts.prod(axis=-2)) / (apart.shape[-2] + 1)

    def nearness(self, apart: NDArray[np.float64]) -> NDArray[np.float64]:
        """From 1 for the same plan to 0 far away, of the same shape as :meth:`correlation`."""
        return np.exp(-apart.sum(axis=-2) / self.reach)
