"""What share of a step each of its parts is: what the model misses of a part, it misses in proportion to it."""

import numpy as np
from numpy.typing import NDArray

from asap.prediction.step_model.step import StepTime

COLLECTIVES = ("tensor", "sequence", "expert", "data", "replica", "slices", "stage")
KINDS = (*("once",) * 2, "again", *("collectives",) * len(COLLECTIVES), *("rest",) * 4)
"""Kind of each part: what a device does once, what its backward pass does again, collectives, the rest."""


def step_shares(step: StepTime) -> NDArray[np.float64]:
    """Of shape (cases, parts), each row adding up to one; :data:`KINDS` has the kinds of the parts."""
    total = np.atleast_1d(np.asarray(step.total, dtype=float))
    parts = (
        step.compute - step.compute_again,
        step.hbm - step.hbm_again,
        step.compute_again + step.hbm_again,
        *(getattr(step, f"{name}_exposed") for name in COLLECTIVES),
        step.bubble,
        step.optimizer,
        step.transfer_exposed,
        step.overhead,
    )
    return np.stack([np.broadcast_to(np.asarray(seconds), total.shape) / total for seconds in parts], axis=-1)
