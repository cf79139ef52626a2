"""From one measured run to others: the modelled step, scaled by what the model missed in the run that is known.

The residual has two parts. What the runs of a group share, such as their network, transfers to another plan; what
belongs to one plan alone, such as a kernel that suits its shapes, does not. The shared part falls with the distance
between the plans (kriging of the residuals: Cressie, *Statistics for Spatial Data*, section 3.2).
"""

import math
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from asap.plans import AXES, Plan, Remat
from asap.plans.plan import OF_WORKLOAD
from asap.plans.remat import Policy, SavedTensors

_COST_BY_TENSOR = 0.75
_REMAT_COST = {
    None: 0.0, Remat.NONE: 0.0, Remat.SELECTIVE: 0.25, Remat.MINIMAL: 0.5, Remat.SAVE_DOT_EXCEPT_MLP: 0.75,
    Remat.SAVE_QKV_PROJ: 0.75, Remat.SAVE_OUT_PROJ: 0.75, Remat.OFFLOAD: 0.75, Remat.FULL: 1.0,
}  # fmt: skip

_OTHER_NUMBERS = 0.25
"""Of another number of parts of the loss, another training state, or another policy that recomputes as much: as much as
the least recomputation."""
OTHER_RUN = 1.0
"""Doublings that runs which differ in more than their plans are apart at least."""
_OTHER_BATCH = 1.0
"""Of another batch: as much as one degree that is doubled while another is halved."""


def plan_distance(plan: Plan, other: Plan) -> float:
    """Doublings by which two plans differ: the sum of :func:`plan_distances`."""
    return sum(plan_distances(plan, other))


def run_distance(plan: Plan, other: Plan, alike: bool) -> float:
    """Doublings between two runs: at least :data:`OTHER_RUN` where they are not ``alike`` in batch, sequence, model and
    machine."""
    return max(plan_distance(plan, other), 0.0 if alike else OTHER_RUN)


def plan_distances(plan: Plan, other: Plan) -> tuple[float, ...]:
    """Doublings by which two plans differ in each thing: degrees, microbatches, virtual stages, levers.

    Recomputation counts up to one, and so does each part that only one of them keeps in host memory.
    """
    return (
        *(abs(math.log2(plan.degree(axis) / other.degree(axis))) / 2 for axis in AXES),
        abs(math.log2((plan.microbatches or 1) / (other.microbatches or 1))) / 2,
        abs(math.log2(plan.pipeline_repeats / other.pipeline_repeats)) / 2,
        len({*plan.offload} ^ {*other.offload}),
        *(_of_workload(name) * (getattr(plan, name) != getattr(other, name)) for name in OF_WORKLOAD),
        _remat_distance(plan.remat, other.remat),
    )


def distinguishing(plan: Plan) -> tuple[Hashable, ...]:
    """What each of :func:`plan_distances` depends on, in its order."""
    of_workload = (getattr(plan, name) for name in OF_WORKLOAD)
    degrees = (plan.degree(axis) for axis in AXES)
    return (*degrees, plan.microbatches, plan.pipeline_repeats, frozenset(plan.offload), *of_workload, plan.remat)


def _of_workload(name: str) -> float:
    return _OTHER_BATCH if name == "global_batch" else _OTHER_NUMBERS


def _remat_distance(policy: Policy | None, other: Policy | None) -> float:
    costs = [_COST_BY_TENSOR if isinstance(one, SavedTensors) else _REMAT_COST[one] for one in (policy, other)]
    differ = None not in (policy, other) and policy != other
    return abs(costs[0] - costs[1]) or _OTHER_NUMBERS * differ


class ResidualTransfer(BaseModel):
    """The share of a run's residual ln(measured / modelled) that other plans have too: all of it under the same plan.

    What exceeds the limit transfers whole: no plan explains so much, so it belongs to the machine or the measurement.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    edges: tuple[float, ...] = Field(default=(), description="distances at which the next bin begins")
    shares: tuple[float, ...] = Field(default=(1.0,), description="of each bin, not increasing")
    limit: float = Field(default=math.inf, ge=0, description="residual within which nine in ten runs lie")

    def expected(self, residual: NDArray | float, distance: NDArray | float) -> NDArray[np.float64]:
        """The residual expected at plans this far away (:func:`plan_distance`)."""
        bins = np.searchsorted(self.edges, distance, side="right")
        share = np.where(np.asarray(distance) == 0, 1.0, np.array(self.shares)[bins])
        return residual - (1 - share) * np.clip(residual, -self.limit, self.limit)
