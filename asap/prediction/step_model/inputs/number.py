"""What a field holds."""

import numpy as np
from numpy.typing import NDArray

Number = float | NDArray[np.float64]
"""One value, or an array of shape (cases,): plans of one model, or runs of many models."""


def select(switch: Number, on: Number, off: Number) -> Number:
    """``on`` where the switch is above 0, else ``off``. A switch that is one number selects without copying."""
    if isinstance(switch, float):
        return on if switch > 0 else off
    return np.where(switch > 0, on, off)
