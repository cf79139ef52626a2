"""How the exposed time of collectives changes from plan to plan, by ratios of degrees alone.

With ``N`` devices, tokens per device go with ``1 / (replica data seq expert)``, gathered weights with
``1 / (model expert)`` (How to Scale Your Model, "Training"). Collectives carry either activations, which are needed at
once, or weights and gradients, which prefetching and the backward pass can hide.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from statistics import mean

from asap.plans import AXES, Plan
from asap.plans.axes import Axis
from asap.prediction.uncertainty.calibration import load_calibration

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
        placed = kind if _is_possible(kind, incumbent) else None
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


def _is_possible(kind: str | None, plan: Plan) -> bool:
    return any(axes_behind(table, kind, plan) for table in (ACTIVATION_AXES, WEIGHT_AXES))


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
