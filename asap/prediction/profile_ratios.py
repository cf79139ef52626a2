"""What-if from a profile alone, for a model whose architecture is unknown.

The measured time of each category is scaled by how that category changes from plan to plan, and only ratios of degrees
enter. Matrix multiplications do the same FLOPs on each device under every plan. What the ratios cannot tell, such as
the shape of a matrix, is left unchanged here and widens the interval instead.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean

from asap.core.units import Provenance, Quantity
from asap.diagnosis.facts import Shares
from asap.plans import AXES, Plan
from asap.plans.axes import Axis
from asap.prediction.prediction import Prediction, TimePart
from asap.prediction.uncertainty.calibration import load_calibration
from asap.profiles import Kpis, Operation, Profile

SPREAD = (0.0, 0.48, 0.79, 0.97)
"""90th percentile of ``|ln(step time ratio)|`` between two published runs of one group that differ in so many doublings
of their mesh and in nothing else (1, 2 and 3: 3,682, 1,742 and 280 ordered pairs of the development measurements, which
tests/calibration/test_pairs.py counts again). Beyond 3 the last step is continued."""


def doublings(plan: Plan, incumbent: Plan) -> float:
    """Doublings moved from axis to axis between two plans for the same number of devices."""
    return sum(max(math.log2(plan.degree(axis) / incumbent.degree(axis)), 0.0) for axis in AXES)


def spread(moved: float, table: Sequence[float] = SPREAD) -> float:
    """90 % half-width of ``ln(step time ratio)`` at so many doublings, by published runs."""
    lower = min(math.floor(moved), len(table) - 2)
    return table[lower] + (moved - lower) * (table[lower + 1] - table[lower])


Table = Mapping[str, tuple[Axis, ...]]
Volume = Callable[[Axis, Plan], float]

ACTIVATION_AXES: Table = {
    "all-reduce": ("model",),
    "reduce-scatter": ("model",),
    "all-gather": ("model", "seq"),
    "all-to-all": ("expert", "seq"),
    "collective-permute": ("seq", "stage", "model"),
}
"""Axes whose collectives of a kind carry activations: tensor reductions and windowed einsums, keys and values."""

WEIGHT_AXES: Table = {
    "all-reduce": ("replica", "seq"),
    "reduce-scatter": ("data",),
    "all-gather": ("data",),
    "collective-broadcast": ("replica", "data"),
}
"""Axes whose collectives of a kind carry weights or gradients; sharded ones are gathered and scattered."""

_OF_ACTIVATIONS: tuple[Axis, ...] = ("model", "seq", "expert", "stage")
_OF_WEIGHTS: tuple[Axis, ...] = ("data", "replica")


@dataclass(frozen=True)
class Exposed:
    """Exposed time of collectives, split by what they carry. Any unit."""

    activations: float
    weights: float

    @property
    def total(self) -> float:
        """Both together."""
        return self.activations + self.weights


def activations(axis: Axis, plan: Plan) -> float:
    """Bytes of activations that a device receives over an axis in one step, up to a factor that no plan changes."""
    degree = plan.degree(axis)
    sequences = 1 / plan.batch_shards
    held = {"model": sequences / plan.degree("seq"), "seq": sequences / plan.degree("model")}
    return held.get(axis, sequences / plan.degree("seq")) * (degree - 1) / degree


def weights(axis: Axis, plan: Plan) -> float:
    """Bytes of weights or gradients that a device receives over an axis in one step, up to the same kind of factor."""
    degree, sharded = plan.degree(axis), plan.degree("model") * plan.degree("expert")
    return (degree - 1) / degree / (sharded * plan.degree("data") if axis == "replica" else sharded)


def exposed_under(plan: Plan, incumbent: Plan, measured: Mapping[str | None, float]) -> Exposed:
    """What the exposed time of each kind, measured under the incumbent, becomes under a plan.

    Axes that the incumbent does not use take the time that axes with the same kind of content took, by their bytes.
    """
    before, carried = _before(measured, incumbent)
    return Exposed(
        sum(part.activations * _change(ACTIVATION_AXES, kind, plan, incumbent) for kind, part in before.items())
        + carried.activations * _added(_OF_ACTIVATIONS, activations, plan, incumbent),
        sum(part.weights * _change(WEIGHT_AXES, kind, plan, incumbent) for kind, part in before.items())
        + carried.weights * _added(_OF_WEIGHTS, weights, plan, incumbent),
    )


def unmeasured_axes(plan: Plan, incumbent: Plan, measured: Mapping[str | None, float]) -> tuple[Axis, ...]:
    """Axes that a plan adds, and of whose traffic nothing alike was measured under the incumbent.

    A tensor axis moves activations, as a sequence axis does, and replicas weights, as sharded data parallelism does.
    What experts exchange and how long stages wait hangs on the model.
    """
    _, carried = _before(measured, incumbent)
    alike = (("model", "seq"), carried.activations), (_OF_WEIGHTS, carried.weights)
    known = {axis for axes, time in alike if time > 0 for axis in axes}
    return tuple(axis for axis in AXES if plan.degree(axis) > incumbent.degree(axis) == 1 and axis not in known)


def _before(measured: Mapping[str | None, float], incumbent: Plan) -> tuple[dict[str | None, Exposed], Exposed]:
    """What each kind carried under the incumbent, and all together."""
    before: dict[str | None, Exposed] = {}
    for kind, time in measured.items():
        placed = kind if any(axes_behind(table, kind, incumbent) for table in (ACTIVATION_AXES, WEIGHT_AXES)) else None
        before[placed] = _split(placed, time + before.get(placed, Exposed(0, 0)).total, incumbent)
    parts = before.values()
    return before, Exposed(sum(part.activations for part in parts), sum(part.weights for part in parts))


@cache
def urgent_share() -> float:
    """Of the exposed time of equally long collectives, the share of those that carry activations, by calibration."""
    constants = load_calibration().full.constants
    tensor, gather = constants["tensor_exposure"].value, constants["gather_exposure"].value
    return tensor / (tensor + gather)


def axes_behind(table: Table, kind: str | None, plan: Plan) -> tuple[Axis, ...]:
    """Axes that a plan uses and that collectives of a kind may belong to; all of a table's if the kind is unknown."""
    possible = {axis for axes in table.values() for axis in axes} if kind is None else table.get(kind, ())
    return tuple(axis for axis in AXES if axis in possible and plan.degree(axis) > 1)


def _split(kind: str | None, time: float, incumbent: Plan) -> Exposed:
    urgent, hidden = (bool(axes_behind(table, kind, incumbent)) for table in (ACTIVATION_AXES, WEIGHT_AXES))
    share = urgent_share() if urgent == hidden else float(urgent)
    return Exposed(time * share, time * (1 - share))


def _change(table: Table, kind: str | None, plan: Plan, incumbent: Plan) -> float:
    volume = activations if table is ACTIVATION_AXES else weights
    axes = axes_behind(table, kind, incumbent)
    return mean(volume(axis, plan) / volume(axis, incumbent) for axis in axes) if axes else 1.0


def _added(axes: tuple[Axis, ...], volume: Volume, plan: Plan, incumbent: Plan) -> float:
    used = sum(volume(axis, incumbent) for axis in axes)
    new = sum(volume(axis, plan) for axis in axes if incumbent.degree(axis) == 1)
    return new / used if used else 0.0


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
        notes=("The architecture is not on record: matrix shapes and HBM use cannot be predicted.",),
    )


def _quantity(value: float, unit: str, width: float | None = None) -> Quantity:
    low, high = (None, None) if width is None else (value * math.exp(-width), value * math.exp(width))
    return Quantity(value=value, unit=unit, provenance=Provenance.MODELLED, source=SOURCE, low=low, high=high)


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
