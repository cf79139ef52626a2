"""From one measured run to others: the modelled step, scaled by what the model missed in the run that is known.

What it missed has two parts. What the runs of a group have in common, such as their network, is carried over whole;
what is of one plan alone, such as a kernel that suits its shapes, is not. How much is common falls with the distance
between the plans (kriging of the residuals: Cressie, *Statistics for Spatial Data*, section 3.2).
"""

import math

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from asap.plans import AXES, Plan, Remat

_REMAT_COST = {
    None: 0.0, Remat.NONE: 0.0, Remat.SELECTIVE: 0.25, Remat.MINIMAL: 0.5, Remat.SAVE_DOT_EXCEPT_MLP: 0.75,
    Remat.SAVE_QKV_PROJ: 0.75, Remat.SAVE_OUT_PROJ: 0.75, Remat.OFFLOAD: 0.75, Remat.FULL: 1.0,
}  # fmt: skip


def plan_distance(plan: Plan, other: Plan) -> float:
    """Doublings by which two plans differ: degrees, microbatches, virtual stages.

    Recomputation counts up to one, and so does each part that only one of them keeps in host memory.
    """
    moved = sum(abs(math.log2(plan.degree(axis) / other.degree(axis))) for axis in AXES) / 2
    moved += abs(math.log2((plan.microbatches or 1) / (other.microbatches or 1))) / 2
    moved += abs(math.log2(plan.pipeline_repeats / other.pipeline_repeats)) / 2
    moved += len({*plan.offload} ^ {*other.offload})
    return moved + abs(_REMAT_COST[plan.remat] - _REMAT_COST[other.remat])


class Carry(BaseModel):
    """What other runs share of the residual ln(measured / modelled) of a run: all of it under the same plan.

    Beyond the limit it is carried whole: no plan explains so much, so it belongs to the machine or to the measurement.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    edges: tuple[float, ...] = Field(default=(), description="distances at which the next bin begins")
    shares: tuple[float, ...] = Field(default=(1.0,), description="of each bin, not increasing")
    limit: float = Field(default=math.inf, ge=0, description="residual within which nine in ten runs lie")

    def of(self, residual: NDArray | float, distance: NDArray | float) -> NDArray[np.float64]:
        """The part of residuals that is expected at plans so far away."""
        bins = np.searchsorted(self.edges, distance, side="right")
        share = np.where(np.asarray(distance) == 0, 1.0, np.array(self.shares)[bins])
        return residual - (1 - share) * np.clip(residual, -self.limit, self.limit)
