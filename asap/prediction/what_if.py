"""From one measured run to others: the measured step scaled by the ratio of modelled steps.

Each category thereby scales by the ratio of its modelled cost, and what the model misses is carried over in
proportion, so that an error common to both runs cancels.
"""

import math

from asap.plans import AXES, Plan, Remat

_REMAT_COST = {
    None: 0.0, Remat.NONE: 0.0, Remat.SELECTIVE: 0.25, Remat.MINIMAL: 0.5, Remat.OFFLOAD: 0.75, Remat.FULL: 1.0,
}  # fmt: skip


def plan_distance(plan: Plan, other: Plan) -> float:
    """Doublings by which two plans differ: degrees, microbatches, virtual stages; recomputation counts up to one."""
    moved = sum(abs(math.log2(plan.degree(axis) / other.degree(axis))) for axis in AXES) / 2
    moved += abs(math.log2((plan.microbatches or 1) / (other.microbatches or 1))) / 2
    moved += abs(math.log2(plan.pipeline_repeats / other.pipeline_repeats)) / 2
    return moved + abs(_REMAT_COST[plan.remat] - _REMAT_COST[other.remat])
