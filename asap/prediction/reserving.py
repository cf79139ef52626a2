"""What allocators reserve over the modelled bytes, by runs that fitted, that died, and that said what they held.

A censored regression (Tobin 1958): a run that fitted reserved less than the HBM, one that died of memory needed more,
and the logarithm of reserved over modelled bytes has a logistic distribution around its median.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from asap.prediction.calibration import Reserve
from asap.prediction.judged import allocator_of, least_memory, stacked
from asap.prediction.memory import Memory
from asap.prediction.runs import Run

Vector = NDArray[np.float64]

CONFIDENCE = 0.65  # of a plan that is said to fit: weighs a lost run against a plan that is passed over
LOW, HIGH = 0.05, 0.95
SOURCE_POWER = 0.3  # n runs of a source weigh as n ** 0.3 independent ones
ROUNDS, POINTS, NARROWER = 6, 7, 0.4

# Logarithms: where scale, reuse and the scale of the logistic distribution start, and how far they may go.
START = np.array([0.0, 0.3, np.log(0.08)])
SPREAD = np.array([0.1, 0.3, 0.5])


def reserves_of(runs: Sequence[Run]) -> dict[str, Reserve]:
    """By allocator, what separates the runs that fitted from those that did not."""
    by_allocator: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_allocator[allocator_of(run)].append(run)
    return {allocator: _reserve(found) for allocator, found in sorted(by_allocator.items())}


def _reserve(runs: Sequence[Run]) -> Reserve:
    modelled = least_memory(runs)
    limit = np.asarray(stacked(runs).machine.hbm_bytes)
    died = np.array([run.out_of_memory for run in runs])
    held = np.array([run.memory_bytes or 0.0 for run in runs])
    counts = Counter(run.source for run in runs)
    weights = np.array([counts[run.source] ** (SOURCE_POWER - 1) for run in runs])

    def loss(theta: Vector) -> float:
        return float((weights * _surprise(theta, modelled, limit, died, held)).sum() + _prior(theta))

    found = _minimum(loss)
    scale, reuse, width = np.exp(found)
    return Reserve(
        scale=round(float(scale * np.exp(width * _logit(CONFIDENCE))), 3),
        reuse=round(float(reuse), 3),
        low=round(float(np.exp(width * (_logit(LOW) - _logit(CONFIDENCE)))), 3),
        high=round(float(np.exp(width * (_logit(HIGH) - _logit(CONFIDENCE)))), 3),
    )


def _surprise(theta: Vector, modelled: Memory, limit: Vector, died: NDArray[np.bool_], held: Vector) -> Vector:
    """Minus the logarithm of each run's likelihood; a measured one has a density, the others a probability."""
    width = np.exp(theta[2])
    median = np.log(modelled.reserved(*np.exp(theta[:2])).total)
    free = (np.log(limit) - median) / width
    off = (np.log(np.where(held > 0, held, limit)) - median) / width
    density = off + 2 * np.logaddexp(0.0, -off) + theta[2]
    return np.where(held > 0, density, np.logaddexp(0.0, np.where(died, free, -free)))


def _prior(theta: Vector) -> float:
    return float((((theta - START) / SPREAD) ** 2).sum() / 2)


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))


def _minimum(loss: Callable[[Vector], float]) -> Vector:
    """The lowest point of grids that narrow around the lowest point so far."""
    best, reach = START, 3 * SPREAD
    for _ in range(ROUNDS):
        axes = [np.linspace(-1, 1, POINTS) * width + center for center, width in zip(best, reach, strict=True)]
        best = np.array(min(product(*axes), key=lambda point: loss(np.array(point))))
        reach = reach * NARROWER
    return best
