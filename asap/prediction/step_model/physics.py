"""What no step can be shorter than, and none that works as it should longer: of a measured step, without a prediction.

Nothing here is fitted, so whether a measurement is believed does not depend on what is predicted of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from asap.core.units import format_percent, format_seconds, significant
from asap.prediction.step_model.compute import model_flops
from asap.prediction.step_model.constants import PRIORS, SHARES, Constants
from asap.prediction.step_model.inputs import StepInputs
from asap.prediction.step_model.step import StepTime, predict_step

PASSES = 3.0
"""Passes over the model that a step makes at most: forward, backward, and forward again. Its collectives take part in
all of them, so one pass has a third of their time."""
SLOWER = 10.0
"""Of the slowest step that anything explains: efficiencies are a tenth of what is usual, overheads ten times as long,
and nothing overlaps. Of 4,300 published runs two are slower, both of one sweep whose runs of the same plan differ by up
to six times."""
ROUNDING = 1.02
"""Published figures are rounded, so 2 % beyond a bound is allowed. Judgement: which published runs are left out."""


@dataclass(frozen=True, slots=True)
class StepBounds:
    """Seconds: the FLOPs of the model at the peak, one pass of its slowest collectives at full rate, the longest."""

    flops: NDArray[np.float64]
    collectives: NDArray[np.float64]
    longest: NDArray[np.float64]

    def each(self) -> Iterator["StepBounds"]:
        """Of every step by itself."""
        yield from map(StepBounds, self.flops, self.collectives, self.longest)

    def too_short(self, seconds: float) -> str | None:
        """Why the step of a single run cannot have taken so little; ``None`` if it can."""
        taken, flops, sent = format_seconds(seconds), self.flops.item(), self.collectives.item()
        if flops > ROUNDING * seconds:
            return f"a step of {taken} would be an MFU of {format_percent(flops / seconds, 0)} for this model and batch"
        if sent > ROUNDING * seconds:
            return f"a step of {taken} is shorter than one pass of its collectives at full rate, {format_seconds(sent)}"
        return None

    def objection(self, seconds: float) -> str | None:
        """What is impossible about the measured step of a single run; ``None`` if nothing is."""
        if short := self.too_short(seconds):
            return short
        longest = self.longest.item()
        if seconds > ROUNDING * longest:
            taken, times = format_seconds(seconds), significant(seconds / longest, 2)
            slowest = format_seconds(longest)
            return f"a step of {taken} is {times} times as long as one at a tenth of the usual rates, {slowest}"
        return None


def step_bounds(inputs: StepInputs) -> StepBounds:
    """The bounds of steps, of shape (steps,)."""
    layout = inputs.plan
    devices = layout.batch_shards * layout.seq * layout.model * layout.stages
    ideal, slowest = predict_step(inputs, fastest()), predict_step(inputs, _slowest())
    cases = np.atleast_1d(np.asarray(slowest.total, dtype=float))
    flops = np.broadcast_to(model_flops(inputs) / (devices * inputs.hardware.peak_matmul), cases.shape)
    return StepBounds(flops, np.broadcast_to(_one_pass(ideal, inputs), cases.shape), cases)


def _one_pass(step: StepTime, inputs: StepInputs) -> NDArray[np.float64]:
    """Of the slowest axis; parameters may stay gathered from microbatch to microbatch."""
    gathered = step.data / inputs.plan.microbatches
    busy = (step.tensor, step.sequence, step.expert, gathered, step.replica, step.slices, step.stage)
    return np.max(np.broadcast_arrays(*busy), axis=0) / PASSES


@cache
def fastest() -> Constants:
    """All rates in full, nothing lost and everything overlapped ("How to Scale Your Model", chapters 1 and 5)."""
    return Constants(**{name: float(name.endswith(("_efficiency", "_window", "_traffic"))) for name in PRIORS})


@cache
def _slowest() -> Constants:
    def worst(name: str) -> float:
        if name.endswith("_efficiency"):
            return PRIORS[name].start / SLOWER
        return float(name.endswith("_exposure")) if name in SHARES else PRIORS[name].start * SLOWER

    return Constants(**{name: worst(name) for name in PRIORS})
