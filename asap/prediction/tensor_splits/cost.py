"""What a split costs, and how much longer a step gets by a difference in it."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import prod
from typing import NamedTuple

from asap.plans import Plan
from asap.prediction.step_model.collectives import Channel, all_gather, all_to_all, channel, network
from asap.prediction.step_model.compute import ACTIVATION_BYTES
from asap.prediction.step_model.constants import Constants
from asap.prediction.step_model.inputs import StepInputs
from asap.prediction.step_model.step import StepTime, exposed


@dataclass(frozen=True)
class Cost:
    """Busy seconds of one device, in one microbatch or at the end of the step."""

    gathers: float = 0.0
    """Of weights, and of their gradients on the way back; in one microbatch."""
    activations: float = 0.0
    """Collectives of activations, for which products wait; in one microbatch."""
    products: float = 0.0
    """Compute and HBM traffic of the products; in one microbatch."""
    reductions: float = 0.0
    """Of gradients between copies, and gathers of the state after its update; once a step."""
    update: float = 0.0
    """HBM traffic of the optimizer; once a step."""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(Cost)))

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(*(getattr(self, part.name) - getattr(other, part.name) for part in fields(Cost)))


class Change(NamedTuple):
    """Seconds that a step takes longer, and between which ends."""

    value: float
    low: float
    high: float


def change(step: StepTime, more: Cost, inputs: StepInputs, constants: Constants) -> Change:
    """How much longer a step gets by what it costs more.

    Compute hides a share of the collectives, as in the step itself. At one end it hides all of those of weights, at the
    other none of any.

    Args:
        step: of the plan.
        more: what the program costs more than the plan.
        inputs: of the plan.
        constants: of the step.
    """
    plan, count = inputs.plan, float(inputs.plan.microbatches)
    rounds = count + float((plan.stages - 1) / plan.pipeline_repeats)
    busy = float(step.compute + step.hbm) / count

    def longer(before: float, added: float, cover: float, share: float) -> float:
        then = exposed(max(before + added, 0.0), cover, share, constants)
        return float(then - exposed(before, cover, share, constants))

    gathers = rounds * longer(float(step.data) / count, more.gathers, busy, float(constants.gather_exposure))
    backward = busy * 2 / 3 * float(inputs.workload.overlaps_reduction)
    reductions = longer(float(step.replica), more.reductions, backward, float(constants.replica_exposure))
    certain = rounds * more.products + more.update
    activations, weights = rounds * more.activations, rounds * more.gathers
    waited = float(constants.tensor_exposure) * activations
    return Change(
        value=certain + waited + gathers + reductions,
        low=certain + min(waited, activations) + min(weights, 0.0) + min(more.reductions, 0.0),
        high=certain + max(waited, activations) + max(weights, 0.0) + max(more.reductions, 0.0),
    )


FASTEST_FIRST = ("model", "seq", "expert", "data", "replica", "stage")


@dataclass(frozen=True)
class Rings:
    """The rings of a group of devices; sizes are those of the whole tensor, as each of them has it in the end."""

    near: Channel
    far: Channel
    torus: float

    def gather(self, size: float) -> float:
        """Seconds of an all-gather, or of the reduce-scatter that mirrors it: over slices each device its own shard."""
        return float(all_gather(size, self.near) + all_gather(size / self.near.members, self.far))

    def reduce(self, size: float) -> float:
        """Seconds of an all-reduce."""
        return 2 * self.gather(size)

    def trade(self, size: float) -> float:
        """Seconds of an all-to-all in which each device has ``size`` bytes for all others."""
        return float(all_to_all(size, self.near, self.torus) + all_to_all(size, self.far, 0.0))


@dataclass(frozen=True)
class Fabric:
    """Makes the rings of a plan."""

    plan: Plan
    inputs: StepInputs
    constants: Constants

    def over(self, axes: Iterable[str]) -> Rings:
        """The rings over some mesh axes; over none every collective takes no time."""
        joined = tuple(axes)
        members = prod(getattr(self.plan.ici, axis) for axis in joined)
        slowest = max((FASTEST_FIRST.index(axis) for axis in joined), default=0)
        inner = prod(getattr(self.plan.ici, axis) for axis in FASTEST_FIRST[:slowest] if axis not in joined)
        return Rings(
            channel(self.inputs, self.constants, members, inner),
            network(self.inputs, self.constants, prod(getattr(self.plan.dcn, axis) for axis in joined)),
            float(self.inputs.hardware.tpu),
        )

    def degree(self, axes: Iterable[str]) -> int:
        """Devices along some axes, over all slices."""
        return prod(getattr(self.plan.ici, axis) * getattr(self.plan.dcn, axis) for axis in axes)


def in_parts_cost(outputs: float, axes: tuple[str, ...], recomputed: float, fabric: Fabric) -> Cost:
    """Of such products forward and backward.

    Args:
        outputs: elements that they write for a token, over all layers of a stage.
        axes: that split the residual stream.
        recomputed: share of them that is computed again.
        fabric: of the plan.
    """
    size = ACTIVATION_BYTES * float(fabric.inputs.tokens_per_microbatch) * outputs
    return Cost(activations=(2 + recomputed) * fabric.over(axes).gather(size))
