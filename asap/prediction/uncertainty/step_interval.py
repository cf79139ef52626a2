"""How far a step may lie from its prediction: the doubts of a run, and the interval that they make.

The doubts are independent, so their squares add up: what no run is free of, what the fit has not seen (chip, stack,
precision, sizes), what is harder to predict (communication, a network, launches, experts), and what the run does not
say. How much each weighs was fitted to sources that the constants had not seen.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from asap.prediction.step_model.inputs import Number, StepInputs
from asap.prediction.step_model.step import StepTime, longer

DOUBTFUL = ("chip", "vendor", "framework", "code", "precision")
Doubts = Mapping[str, NDArray[np.float64]]
"""Of each step, by name, without unit."""


def doubts_of(
    inputs: StepInputs, step: StepTime, distance: Number, doubtful: Sequence[Collection[str]], unstated: Number
) -> Doubts:
    """Of each step, without unit: switches, shares of the step, widths of the region, e-folds of what is not said.

    Args:
        inputs: of the steps.
        step: as predicted.
        distance: of the sizes from the region.
        doubtful: of each step, or one for all, the kinds of its groups that the fit has not seen or that gather many.
        unstated: standard deviation of ln(step) over what the run may be that it does not say.
    """
    layout, machine = inputs.plan, inputs.hardware
    devices = layout.batch_shards * layout.seq * layout.model * layout.stages
    names = ("tensor", "sequence", "expert", "data", "replica", "slices", "stage")
    exposed = sum(getattr(step, f"{name}_exposed") for name in names) / step.total
    kinds = {kind: np.array([float(kind in own) for own in doubtful]) for kind in DOUBTFUL}
    found = {
        "any": 1.0,
        "distance": distance,
        **kinds,
        "communication": exposed,
        "network": exposed * (devices > machine.scaleup_domain),
        "launches": _slower_launches(step),
        "experts": np.minimum(inputs.model.experts, 1.0),
        "unstated": unstated,
    }
    return {name: np.asarray(value, dtype=float) for name, value in found.items()}


def _slower_launches(step: StepTime) -> Number:
    """E-folds that a step takes longer if its host takes e times as long to launch kernels: how fast hosts are differs,
    and launches that a device just hides no longer hide on a slower one."""
    device = step.compute + step.hbm + step.tensor_exposed + step.sequence_exposed + step.expert_exposed
    return np.log1p((longer(np.e * step.launches, device) - longer(step.launches, device)) / step.total)


class StepInterval(BaseModel):
    """Half-width of the 90 % interval of ln(measured / predicted): a quantile times the root of the squared doubts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spreads: dict[str, float] = Field(description="doubt → e-folds for each unit of it")
    quantile: float = Field(default=1.0, ge=0, description="of |ln(measured / predicted)| over the root")

    def at_each(self, doubts: Doubts) -> NDArray[np.float64]:
        """The half-widths of many steps."""
        return self.quantile * self.scale(doubts)

    def at(self, doubts: Doubts) -> float:
        """The half-width of one step."""
        return float(self.at_each(doubts).item())

    def scale(self, doubts: Doubts) -> NDArray[np.float64]:
        """The root of the squared doubts."""
        return np.sqrt(sum(self.added(doubts).values(), np.zeros(())))

    def added(self, doubts: Doubts) -> dict[str, NDArray[np.float64]]:
        """What each doubt adds to the square."""
        spreads = {**self.spreads, "unstated": 1.0}
        return {name: np.square(spreads.get(name, 0.0) * value) for name, value in doubts.items()}
