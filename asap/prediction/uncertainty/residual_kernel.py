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
from collections.abc import Hashable
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from asap.plans import AXES, Plan, Remat
from asap.plans.plan import OF_WORKLOAD
from asap.plans.remat import Policy, RecomputedLayers, RecomputedModules, SavedTensors

COMPILED = 2.5
"""Scatter of compiled steps about the model over that of measured ones: likeliest of a dense decoder and a mixture that
were compiled under 60 and 20 configurations (``dense`` and ``moe16`` of ``tests/data/search``)."""
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


def log_likelihood(residuals: Array, covariance: Array) -> float:
    """Of the residuals of a group. Their variance has an inverse-gamma distribution and is integrated out, which leaves
    a multivariate t distribution (Gelman et al., *Bayesian Data Analysis*, section 3.2)."""
    root, count = np.linalg.cholesky(covariance), len(residuals)
    square = float((np.linalg.solve(root, residuals) ** 2).sum())
    half = (PRIOR_WEIGHT + count) / 2
    constant = math.lgamma(half) - math.lgamma(PRIOR_WEIGHT / 2) - count / 2 * np.log(PRIOR_WEIGHT * np.pi)
    return float(constant - np.log(np.diag(root)).sum() - half * np.log1p(square / PRIOR_WEIGHT))


class Widths(BaseModel):
    """Half-widths of the 90 % interval of ln(measured / predicted): their square grows with how much of the step
    changes, as that of a random walk grows with its steps."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    least: float = Field(ge=0, description="half-width where no part of the step changes: steps vary")
    whole: float = Field(ge=0, description="what is added to it where as much changes as the shorter step takes")

    def at(self, change: float) -> float:
        """The half-width where so much changes (:func:`change_between`)."""
        return float(self.at_each(np.asarray(change)))

    def at_each(self, change: NDArray[np.float64]) -> NDArray[np.float64]:
        """The half-widths of many."""
        return np.sqrt(self.least**2 + self.whole**2 * change)


class PlanWidths(BaseModel):
    """Of dense models, and of mixtures of experts, whose plans are harder to tell apart."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dense: Widths
    mixture: Widths

    def of(self, mixture: bool) -> Widths:
        """Those of one model."""
        return self.mixture if mixture else self.dense


class ResidualTransfer(BaseModel):
    """The share of a run's residual ln(measured / modelled) that others have too: all of it where nothing changes.

    What exceeds the limit transfers whole: no plan explains so much, so it belongs to the machine or the measurement.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    reach: float = Field(default=math.inf, gt=0, description="change at which the share has fallen to 1/e")
    limit: float = Field(default=math.inf, ge=0, description="residual within which nine in ten runs lie")

    def expected(self, residual: NDArray | float, change: NDArray | float) -> NDArray[np.float64]:
        """The residual expected where so much of the step changes (:func:`change_between`), recomputation apart."""
        return residual - (1 - np.exp(-np.asarray(change) / self.reach)) * np.clip(residual, -self.limit, self.limit)


_COST_BY_TENSOR, _COST_OF_MODULES = 0.75, 0.25
"""Doublings that a policy by tensor, or by module, counts as. Judgement: widths of plans that recompute otherwise."""
_REMAT_COST = {
    None: 0.0, Remat.NONE: 0.0, Remat.SELECTIVE: 0.25, Remat.MINIMAL: 0.5, Remat.SAVE_DOT_EXCEPT_MLP: 0.75,
    Remat.SAVE_QKV_PROJ: 0.75, Remat.SAVE_OUT_PROJ: 0.75, Remat.OFFLOAD: 0.75, Remat.FULL: 1.0,
}  # fmt: skip
"""The same of recomputation, by how much of a layer it repeats. Judgement: widths of other plans."""

_OTHER_NUMBERS = 0.25
"""Of another number of parts of the loss, another training state, or another policy that recomputes as much: as much as
the least recomputation. Judgement: widths of other plans."""
_OTHER_BATCH = 1.0
"""Of another batch: as much as one degree that is doubled while another is halved. Judgement: widths of other plans."""


def plan_distances(plan: Plan, other: Plan) -> tuple[float, ...]:
    """Doublings by which two plans differ in each thing: degrees, microbatches, virtual stages, levers.

    Recomputation counts up to one, and so does each part that only one of them keeps in host memory.
    """
    return (
        *(abs(math.log2(plan.degree(axis) / other.degree(axis))) / 2 for axis in AXES),
        abs(math.log2((plan.microbatches or 1) / (other.microbatches or 1))) / 2,
        abs(math.log2(plan.pipeline_repeats / other.pipeline_repeats)) / 2,
        len({*plan.offload} ^ {*other.offload}),
        *(
            (_OTHER_BATCH if name == "global_batch" else _OTHER_NUMBERS) * (getattr(plan, name) != getattr(other, name))
            for name in OF_WORKLOAD
        ),
        _remat_distance(plan.remat, other.remat),
    )


def distinguishing(plan: Plan) -> tuple[Hashable, ...]:
    """What each of :func:`plan_distances` depends on, in its order."""
    of_workload = (getattr(plan, name) for name in OF_WORKLOAD)
    degrees = (plan.degree(axis) for axis in AXES)
    return (*degrees, plan.microbatches, plan.pipeline_repeats, frozenset(plan.offload), *of_workload, plan.remat)


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
