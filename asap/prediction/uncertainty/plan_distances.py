"""How far two plans lie apart, in each thing in which they differ."""

import math
from collections.abc import Hashable

from asap.plans import AXES, Plan, Remat
from asap.plans.partial_remat import RecomputedLayers, RecomputedModules
from asap.plans.plan import OF_WORKLOAD
from asap.plans.remat import Policy, SavedTensors

_COST_BY_TENSOR, _COST_OF_MODULES = 0.75, 0.25
_REMAT_COST = {
    None: 0.0, Remat.NONE: 0.0, Remat.SELECTIVE: 0.25, Remat.MINIMAL: 0.5, Remat.SAVE_DOT_EXCEPT_MLP: 0.75,
    Remat.SAVE_QKV_PROJ: 0.75, Remat.SAVE_OUT_PROJ: 0.75, Remat.OFFLOAD: 0.75, Remat.FULL: 1.0,
}  # fmt: skip

_OTHER_NUMBERS = 0.25
"""Of another number of parts of the loss, another training state, or another policy that recomputes as much: as much as
the least recomputation."""
_OTHER_BATCH = 1.0
"""Of another batch: as much as one degree that is doubled while another is halved."""


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
    costs = [_cost(one) for one in (policy, other)]
    differ = None not in (policy, other) and policy != other
    return abs(costs[0] - costs[1]) or _OTHER_NUMBERS * differ


def _cost(policy: Policy | None) -> float:
    """Between nothing recomputed (0) and everything (1)."""
    if isinstance(policy, SavedTensors):
        return _COST_BY_TENSOR
    if isinstance(policy, RecomputedLayers):
        return float(policy.share)
    if isinstance(policy, RecomputedModules):
        return _COST_BY_TENSOR if {"mlp", "moe"} & {*policy.modules} else _COST_OF_MODULES
    return _REMAT_COST[policy]
