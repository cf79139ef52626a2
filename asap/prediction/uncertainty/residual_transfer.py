"""From one measured run to others: the modelled step, scaled by what the model missed in the run that is known.

The residual has two parts. What the runs of a group share, such as their network, transfers to another plan; what
belongs to one plan alone, such as a kernel that suits its shapes, does not. The shared part falls with how much of the
step changes (kriging of the residuals with an exponential covariance: Cressie, *Statistics for Spatial Data*, sections
2.3 and 3.2).
"""

import math

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field


class ResidualTransfer(BaseModel):
    """The share of a run's residual ln(measured / modelled) that others have too: all of it where nothing changes.

    What exceeds the limit transfers whole: no plan explains so much, so it belongs to the machine or the measurement.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    reach: float = Field(default=math.inf, gt=0, description="change at which the share has fallen to 1/e")
    limit: float = Field(default=math.inf, ge=0, description="residual within which nine in ten runs lie")

    def expected(self, residual: NDArray | float, change: NDArray | float) -> NDArray[np.float64]:
        """The residual expected where so much of the step changes (:func:`change_between`)."""
        return residual - (1 - np.exp(-np.asarray(change) / self.reach)) * np.clip(residual, -self.limit, self.limit)
