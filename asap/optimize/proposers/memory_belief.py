"""Whether configurations fit, after what was seen: how much more HBM they take than modelled, learnt from each try.

The factor is one for all configurations of a run, up to a smaller part of its own for each: a log-normal prior from
the calibration, weighed by what fitted, what did not, and how much was used.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from asap.evidence.step_belief import Z_90, Array, Prior
from asap.optimize.outcome import Code, Try
from asap.optimize.results import ended
from asap.prediction.uncertainty.calibration import AllocatorOverhead

_POINTS = np.linspace(-3.5, 3.5, 71)  # deviations at which beliefs are summed
OWN_SHARE = 0.25
"""Of the factor's deviation, what one configuration has alone. Judgement: odds to fit after a death."""


@dataclass(frozen=True)
class MemoryKernel:
    """Mean and deviation of ``ln(HBM / modelled HBM)`` of a run."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, overhead: AllocatorOverhead) -> "MemoryKernel":
        """As published runs have it."""
        low, high = np.log(overhead.low), np.log(overhead.high)
        return cls(float(low + high) / 2, max(float(high - low) / 2 / Z_90, 1e-3))


UNBIASED = MemoryKernel(0.0, 1e-3)
"""Of a model of memory that is exact."""


def probability_fits(prior: Prior, kernel: MemoryKernel, tries: Sequence[Try], capacity: float) -> Array:
    """That each configuration fits into HBM, of shape (n,); 1 where memory plays no part.

    Args:
        prior: with the modelled share of HBM.
        kernel: of the factor on it.
        tries: what was seen.
        capacity: bytes of HBM of a device.
    """
    if prior.log_fill is None:
        return np.ones(len(prior.configurations))
    factors, own = kernel.mean + kernel.deviation * _POINTS, OWN_SHARE * kernel.deviation
    log_weights = -0.5 * _POINTS**2
    for each, outcome in ended(tries):
        place = prior.index.get(each.configuration)
        if place is None:
            continue
        fill = float(prior.log_fill[place])
        if outcome.status == "done" and outcome.hbm_bytes:
            log_weights = log_weights - 0.5 * ((np.log(outcome.hbm_bytes / capacity) - fill - factors) / own) ** 2
        elif outcome.status == "done":
            log_weights = log_weights + np.log(np.maximum(_normal((-fill - factors) / own), 1e-12))
        elif Code.OUT_OF_MEMORY in outcome.codes:
            log_weights = log_weights + np.log(np.maximum(1 - _normal((-fill - factors) / own), 1e-12))
    weights = np.exp(log_weights - log_weights.max())
    odds = _normal((-prior.log_fill[:, None] - factors[None, :]) / own)
    return odds @ (weights / weights.sum())


def _normal(z: Array) -> Array:
    from scipy.special import ndtr

    return np.asarray(ndtr(z))
