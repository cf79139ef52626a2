"""What a field holds."""

import numpy as np
from numpy.typing import NDArray

Number = float | NDArray[np.float64]
"""One value, or an array of shape (cases,): plans of one model, or runs of many models."""
