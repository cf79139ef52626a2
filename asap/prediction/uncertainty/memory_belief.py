"""HBM after what came of other plans of the same run.

What the model misses of the memory of one plan it misses in part of all plans of that run. Of ln(reserved / modelled) a
part is shared by the plans of a run, and the rest is each plan's own. A plan that ran, one that died and a peak that
was read say how much is shared: the posterior is summed over a grid.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from asap.prediction.uncertainty.calibration import AllocatorOverhead

Vector = NDArray[np.float64]
SHARED = 0.39
"""Share of the variance that plans of one run have in common: 675 published peaks in 60 groups of one source, model and
number of devices have a variance of 0.0446 inside of their groups, of 0.0728 in all."""
UNLIKE, WIDER = 0.05, 4.0
"""Share of runs that are not as on record (another batch, no recomputation, other processes), and how many times as
wide the shared miss is of those. Judgement: odds to fit after a run died that was all but sure to fit."""
ACCIDENTS = 0.01
"""Share of runs that die whatever they hold, which tells nothing of others. Judgement: odds to fit after a death."""
_UNIT = NormalDist()
_GRID = np.linspace(-16.0, 16.0, 321)  # points at which beliefs are summed
_FILL = np.linspace(-2.0, 2.0, 201)  # the same, of ln(HBM that is filled)
_SUREST = 1e-9  # odds that stand for none


@dataclass(frozen=True)
class Seen:
    """What came of one plan.

    Args:
        held: modelled bytes at the required confidence.
        fitted: whether it did; None where its peak is known.
        peak: measured bytes.
        explained: whether the scatter of the model explains it.
    """

    held: float
    fitted: bool | None = None
    peak: float | None = None
    explained: bool = True


@dataclass(frozen=True)
class MemoryBelief:
    """What is believed of the HBM of plans that nothing came of yet.

    Args:
        overhead: of the run's allocator.
        capacity: HBM of a device, bytes.
        seen: what came of plans.
    """

    overhead: AllocatorOverhead
    capacity: float
    seen: tuple[Seen, ...]

    def probability_fits(self, held: NDArray | float) -> NDArray[np.float64]:
        """That plans which are modelled to hold so many bytes fit."""
        return np.interp(np.log(np.asarray(held) / self.capacity), _FILL, self._by_fill)

    @cached_property
    def _by_fill(self) -> Vector:
        """The probability at each of some ratios of held bytes to the capacity."""
        room = self._room(np.exp(_FILL) * self.capacity)[:, None]
        return (self._weights * _normal_cdf((room - self._shared) / np.sqrt(1 - SHARED))).sum(axis=-1)

    @cached_property
    def of_explained(self) -> "MemoryBelief | None":
        """From what the model explains alone."""
        return believed(self.overhead, self.capacity, [one for one in self.seen if one.explained])

    def scale(self, likelihood: float) -> float:
        """From the modelled bytes of a plan to those that it needs at most, as likely as is said."""
        return float(np.exp(-np.interp(-likelihood, -self._by_fill, _FILL)))

    def _room(self, held: NDArray | float) -> Vector:
        """What is free, in standard deviations: what makes the probability without any evidence."""
        odds = np.clip(self.overhead.probability_fits(held, self.capacity), _SUREST, 1 - _SUREST)
        return np.vectorize(_UNIT.inv_cdf)(odds)

    @property
    def _shared(self) -> Vector:
        return _GRID * np.sqrt(SHARED)

    @cached_property
    def _weights(self) -> Vector:
        """Of each shared miss after what was seen."""
        deviation = np.log(self.overhead.high / self.overhead.low) / (2 * _UNIT.inv_cdf(0.95))
        found = (1 - UNLIKE) * np.exp(-(_GRID**2) / 2) + UNLIKE / WIDER * np.exp(-((_GRID / WIDER) ** 2) / 2)
        for one in self.seen:
            if one.peak is not None:
                middle = np.log(one.held * np.sqrt(self.overhead.low * self.overhead.high))
                off = (np.log(one.peak) - middle) / deviation - self._shared
                found = found * np.exp(-(off**2) / (2 * (1 - SHARED)))
            elif one.fitted is not None:
                below = _normal_cdf((self._room(one.held) - self._shared) / np.sqrt(1 - SHARED))
                found = found * (below if one.fitted else ACCIDENTS + (1 - ACCIDENTS) * (1 - below))
        total = found.sum()
        return found / total if total > 0 else np.full_like(_GRID, 1 / len(_GRID))


def believed(overhead: AllocatorOverhead, capacity: float, seen: Sequence[Seen]) -> MemoryBelief | None:
    """The belief; None where nothing was seen, or the allocator's scatter is not known."""
    return MemoryBelief(overhead, capacity, tuple(seen)) if seen and overhead.high > overhead.low else None


def _normal_cdf(deviations: NDArray | float) -> Vector:
    return 0.5 * (1 + np.vectorize(math.erf)(np.asarray(deviations) / math.sqrt(2)))
