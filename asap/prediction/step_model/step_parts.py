"""The parts of a step, by which steps are compared: what of each is exposed, but copies to host memory whole, as how
much of them hides is known least.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap.prediction.step_model.inputs import Number, StepInputs
from asap.prediction.step_model.step import StepTime

COLLECTIVES = ("tensor", "sequence", "expert", "data", "replica", "slices", "stage")
AGAIN = 2  # place of what is computed again among the parts


def step_parts(step: StepTime) -> tuple[Number, ...]:
    """Seconds of each part."""
    return (
        step.compute - step.compute_again,
        step.hbm - step.hbm_again,
        step.compute_again + step.hbm_again,
        *(getattr(step, f"{name}_exposed") for name in COLLECTIVES),
        step.bubble,
        step.optimizer,
        step.transfer,
        step.overhead,
    )


def parts_of_each(step: StepTime) -> NDArray[np.float64]:
    """The same of many steps, of shape (steps, parts)."""
    cases = np.atleast_1d(np.asarray(step.total)).shape
    return np.stack([np.broadcast_to(np.asarray(part, dtype=float), cases) for part in step_parts(step)], axis=-1)


def change_between(parts: Sequence[Number], others: Sequence[Number], recomputed: bool = True) -> Number:
    """How much of a step changes from one run to another: half of what its parts differ by, over the shorter step.

    Args:
        parts: seconds for each token or sequence.
        others: those of the other run.
        recomputed: whether what is computed again counts, which is as fast or slow as what is computed first.
    """
    pairs = zip(parts, others, strict=True)
    moved = sum(np.abs(one - other) for part, (one, other) in enumerate(pairs) if recomputed or part != AGAIN)
    return moved / (2 * np.minimum(sum(parts), sum(others)))


def stack(steps: Sequence[StepInputs]) -> StepInputs:
    """The inputs of many steps as one, each field an array."""
    parts = ("model", "workload", "hardware", "plan")
    return StepInputs(*(_stack([getattr(inputs, part) for inputs in steps]) for part in parts))


def _stack(parts: Sequence[Any]) -> Any:
    names = [field.name for field in fields(parts[0])]
    return type(parts[0])(**{name: _joined([getattr(part, name) for part in parts]) for name in names})


def _joined(values: Sequence[Number]) -> NDArray:
    single = all(isinstance(value, int | float) for value in values)
    return np.array(values) if single else np.hstack(values)
