"""What a predicted gain is worth after doubt: the gain times how much more likely it is to be one than not, times the
probability that the plan fits into HBM.

A gain of which it is even odds that it is none counts nothing; one that is certain counts whole. A larger gain and
better odds raise it, so what stands first is never behind in all of them.
"""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asap.core.provenance import Quantity
from asap.evidence.step_belief import Z_90


def probability_faster(gain: float, half_width: float) -> float:
    """That ``ln(step time)`` falls, for a normal distribution with this 90 % interval."""
    return NormalDist().cdf(gain / (half_width / Z_90)) if half_width > 0 else float(gain > 0) + 0.5 * (gain == 0)


def add_precedent(gain: ArrayLike, added: ArrayLike) -> NDArray[np.float64]:
    """Gain in ``ln(step time)`` with what precedents add to it: they decide between gains, and turn no predicted loss
    into one."""
    before = np.asarray(gain, dtype=float)
    return before + np.where(before > 0, added, np.minimum(added, 0.0))


def after_doubt(gain: float, half_width: float, fit_odds: float = 1.0) -> float:
    """Gain in ``ln(step time)`` after doubt; a loss counts whole."""
    return gain * (2 * probability_faster(gain, half_width) - 1) * fit_odds if gain > 0 else gain


def after_doubt_of_each(
    gain: NDArray[np.float64], half_width: NDArray[np.float64], fit_odds: NDArray[np.float64] | float = 1.0
) -> NDArray[np.float64]:
    """The same of many, to a few parts in ten thousand (Page, Applied Statistics 26, 1977, 75: a normal distribution
    by a hyperbolic tangent)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = np.clip(np.where(half_width > 0, gain * Z_90 / half_width, np.sign(gain) * 9), -9, 9)
    odds = np.tanh(z * math.sqrt(2 / math.pi) * (1 + 0.044715 * z * z))
    return np.where(gain > 0, gain * odds * fit_odds, gain)


def log_interval(relative: Quantity) -> tuple[float, float]:
    """Gain in ``ln(step time)`` and half the width of its 90 % interval; 0 where it has none."""
    if relative.low is None or relative.high is None or relative.low >= relative.high:
        return -math.log(relative.value), 0.0
    return -math.log(relative.value), math.log(relative.high / relative.low) / 2
