"""What a split costs, and how much longer a step gets by a difference in it."""

from dataclasses import dataclass, fields
from typing import NamedTuple

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
