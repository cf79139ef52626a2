"""How far a step may lie from its prediction: the doubts of a run, and the interval that they make.

The doubts are independent, so their squares add up: what no run is free of, what the fit has not seen (chip, stack,
precision, sizes), what is harder to predict (communication, a network, launches, experts), and what the run does not
say. How much each weighs was fitted to sources that the constants had not seen.
"""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import Quantity
from asap.prediction.step_model.inputs import Number, StepInputs
from asap.prediction.step_model.step import StepTime, longer

DOUBTFUL = ("chip", "vendor", "framework", "together", "code", "precision")
NEW = ("distance", "chip", "vendor", "framework", "together", "precision", "unstated")
"""Doubts of what the fit has not seen, and of what the run does not say."""
DENSE, MIXTURE = "dense", "mixture"
Doubts = Mapping[str, NDArray[np.float64]]
"""Of each step, by name, without unit."""


def cell_of(stack: str | None, kind: str) -> str:
    """Runs that are predicted about equally well: of one stack, dense or mixtures of experts."""
    return f"{kind} on {stack or 'other'}"


def doubts_of(
    inputs: StepInputs,
    step: StepTime,
    distance: Number,
    doubtful: Sequence[Collection[str]],
    unstated: Number,
    stacks: Sequence[str | None],
) -> Doubts:
    """Of each step, without unit: switches, shares of the step, widths of the region, e-folds of what is not said; its
    cell is a switch as well.

    Args:
        inputs: of the steps.
        step: as predicted.
        distance: of the sizes from the region.
        doubtful: of each step, or one for all, the kinds of its groups that the fit has not seen or that gather many.
        unstated: standard deviation of ln(step) over what the run may be that it does not say.
        stacks: classes of framework, of each step or one for all.
    """
    layout, machine = inputs.plan, inputs.hardware
    devices = layout.batch_shards * layout.seq * layout.model * layout.stages
    names = ("tensor", "sequence", "expert", "data", "replica", "slices", "stage")
    exposed = sum(getattr(step, f"{name}_exposed") for name in names) / step.total
    kinds = {kind: np.array([float(kind in own) for own in doubtful]) for kind in DOUBTFUL}
    mixture = np.minimum(inputs.model.experts, 1.0)
    cells = {
        cell_of(stack, kind): share * np.array([float(own == stack) for own in stacks])
        for stack in dict.fromkeys(stacks)
        for kind, share in ((DENSE, 1 - mixture), (MIXTURE, mixture))
    }
    found = cells | {
        "any": 1.0,
        "distance": distance,
        **kinds,
        "network": exposed * (devices > machine.scaleup_domain),
        "launches": _slower_launches(step),
        "experts": mixture,
        "unstated": unstated,
    }
    return {name: np.asarray(value, dtype=float) for name, value in found.items()}


def _slower_launches(step: StepTime) -> Number:
    """E-folds that a step takes longer if its host takes e times as long to launch kernels: how fast hosts are differs,
    and launches that a device just hides no longer hide on a slower one."""
    device = step.compute + step.hbm + step.tensor_exposed + step.sequence_exposed + step.expert_exposed
    return np.log1p((longer(np.e * step.launches, device) - longer(step.launches, device)) / step.total)


class StepInterval(BaseModel):
    """Half-width of the 90 % interval of ln(measured / predicted): a quantile times the root of the squared doubts.

    How widely runs of a cell scatter says nothing of what is new in a run: a factor below one narrows only the doubts
    of what was seen.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    spreads: dict[str, float] = Field(description="doubt → e-folds for each unit of it")
    cells: dict[str, float] = Field(default_factory=dict, description="cell → factor on the doubts of its runs")
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
        factor = math.prod(
            (self.cells[name] ** value for name, value in doubts.items() if name in self.cells), start=1.0
        )
        wider = np.maximum(factor, 1.0)
        return {
            name: np.square(spreads[name] * value * (wider if name in NEW else factor))
            for name, value in doubts.items()
            if name in spreads
        }


REASONS = {
    "distance": "its sizes lie outside those of the runs that the model was fitted to",
    "chip": "the model was fitted to no run on this chip",
    "vendor": "the model was fitted to no run on a chip of this maker",
    "framework": "the software is not stated, or none that the model was fitted to",
    "together": "it was fitted to no such model, nor adapters, on this chip or with this software on its maker's chips",
    "code": "software of this kind differs much from one code to the next",
    "precision": "the model was fitted to no run in this precision",
    "network": "communication between nodes is hard to predict",
    "launches": "how fast the host launches kernels decides the step",
    "experts": "mixtures of experts are hard to predict",
}


def widest_doubt(interval: StepInterval, doubts: Doubts, index: int) -> str | None:
    """The name of the doubt that adds most to the interval of one step; ``unstated`` is what the run does not say, and
    ``None`` stands for what no run is free of."""
    added = interval.added(doubts)
    found = max(added, key=lambda name: float(added[name].flat[index if added[name].size > 1 else 0]))
    return None if found == "any" else found


REACH = 2.326 / 1.645
"""Half-width of a 98 % interval over that of a 90 % interval, of a normal distribution. One measurement in ten lies
outside of the 90 % interval by chance alone, one in fifty outside of this one."""


def excess(measured: float, expected: Quantity) -> float:
    """``ln(measured / expected)``."""
    return math.log(measured / expected.value)


def half_width(expected: Quantity) -> float:
    """Of the 90 % interval, on a logarithmic scale; 0 where there is none."""
    if not expected.low or not expected.high:
        return 0.0
    return math.log(expected.high / expected.low) / 2


def is_outside(measured: float, expected: Quantity) -> bool:
    """Whether a measurement lies too far off to be of what was modelled: outside of its 98 % interval."""
    width = half_width(expected)
    return width > 0 and abs(excess(measured, expected)) > REACH * width
