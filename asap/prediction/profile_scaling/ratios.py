"""What-if from a profile alone, for a model whose architecture is unknown.

The measured time of each category is scaled by how that category changes from plan to plan, and only ratios of degrees
enter. Matrix multiplications do the same FLOPs on each device under every plan. What the ratios cannot tell, such as
the shape of a matrix, is left unchanged here and widens the interval instead.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from asap.core.provenance import Provenance, Quantity
from asap.diagnosis.shares import Shares
from asap.plans import Plan
from asap.prediction.prediction import Prediction, TimePart
from asap.prediction.profile_scaling.plan_distance import doublings, spread
from asap.prediction.profile_scaling.traffic import Exposed, exposed_under
from asap.profiles import Kpis, Operation, Profile

SOURCE = "measured time by category, scaled by the ratio of degrees"


def hbm_ratio(plan: Plan, incumbent: Plan) -> float:
    """Change of HBM traffic: the geometric mean over what the traffic may consist of.

    Weights and their gradients follow ``1 / model``; optimizer state ``1 / (data model)``; activations inside the
    MLP and attention stay, as tokens per device and width trade places; the residual stream follows the tokens per
    device. Which of them dominates is not known without the architecture.
    """
    model = plan.degree("model") / incumbent.degree("model")
    data = plan.degree("data") / incumbent.degree("data")
    shards = plan.batch_shards * plan.degree("seq") / (incumbent.batch_shards * incumbent.degree("seq"))
    kinds = (1 / model, 1 / (data * model), 1 / (shards * model), 1 / shards)
    return math.prod(kinds) ** (1 / len(kinds))


@dataclass(frozen=True)
class MeasuredSplit:
    """A step, split into what scales differently. Fractions of the step that add up to 1."""

    collectives: Mapping[str | None, float]
    hbm: float
    unchanged: float

    @classmethod
    def of(cls, profile: Profile, shares: Shares) -> "MeasuredSplit":
        """Split the step of a profile; a partial list of operations lends its proportions to the rest."""
        collectives = _by_kind(profile.operations, profile.kpis)
        communication = sum(collectives.values())
        compute = [op for op in profile.operations if not op.is_collective]
        listed = sum(op.fraction for op in compute)
        hbm = sum(op.fraction for op in compute if op.bound == "hbm")
        if shares.partial and listed:
            hbm *= (1.0 - communication - (shares.idle or 0.0)) / listed
        return cls(collectives=collectives, hbm=hbm, unchanged=max(1.0 - communication - hbm, 0.0))


def predict_from_profile(plan: Plan, incumbent: Plan, profile: Profile, split: MeasuredSplit) -> Prediction:
    """Predict the step time of ``plan`` relative to the ``incumbent`` that the profile shows."""
    exposed = exposed_under(plan, incumbent, split.collectives)
    hbm = split.hbm * hbm_ratio(plan, incumbent)
    relative = split.unchanged + hbm + exposed.total
    width = spread(doublings(plan, incumbent))
    step = profile.kpis.step_time_s
    return Prediction(
        plan=plan,
        method="profile_ratios",
        relative_step_time=_quantity(relative, "fraction", width),
        step_time=_quantity(step * relative, "s", width) if step else None,
        parts=_parts(step, split.unchanged, hbm, exposed) if step else (),
        communication=_quantity(exposed.total / relative, "fraction"),
        doublings=doublings(plan, incumbent),
        notes=("The architecture is unknown: matrix shapes and HBM use cannot be predicted.",),
    )


def _quantity(value: float, unit: str, width: float | None = None) -> Quantity:
    return Quantity(
        value=value,
        unit=unit,
        provenance=Provenance.MODELLED,
        source=SOURCE,
        low=None if width is None else value * math.exp(-width),
        high=None if width is None else value * math.exp(width),
    )


def _by_kind(operations: tuple[Operation, ...], kpis: Kpis) -> dict[str | None, float]:
    listed: dict[str | None, float] = {}
    for operation in operations:
        if operation.is_collective:
            listed[operation.collective] = listed.get(operation.collective, 0.0) + operation.fraction
    total = sum(listed.values())
    if kpis.communication is None:
        return listed
    if not total:
        return {None: kpis.communication}
    return {kind: share * kpis.communication / total for kind, share in listed.items()}


def _parts(step: float, unchanged: float, hbm: float, exposed: Exposed) -> tuple[TimePart, ...]:
    shares = {
        "compute and other": unchanged,
        "hbm": hbm,
        "collectives of activations": exposed.activations,
        "collectives of weights and gradients": exposed.weights,
    }
    return tuple(TimePart(name=name, busy_s=step * share, exposed_s=step * share) for name, share in shares.items())
