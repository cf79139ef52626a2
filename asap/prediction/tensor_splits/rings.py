"""The devices that a collective over some mesh axes joins: within a slice, and over slices."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from asap.plans import Plan
from asap.prediction.step_model.collectives import Channel, all_gather, all_to_all, channel, network
from asap.prediction.step_model.constants import Constants
from asap.prediction.step_model.inputs import StepInputs

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
