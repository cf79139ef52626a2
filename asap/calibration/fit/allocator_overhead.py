"""Allocator overhead over the modelled bytes, from runs that fitted, ran out of memory, or published their peak.

A censored regression (Tobin 1958): a run that fitted reserved less than the HBM, one that ran out of memory needed
more, and the logarithm of reserved over modelled bytes has a logistic distribution around its median.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asap.calibration.dataset.runs import PublishedRun
from asap.calibration.fit.predicted_runs import allocator_of, minimum_memory, stacked
from asap.prediction.prediction import FIT_CONFIDENCE
from asap.prediction.step_model.groups import EXPANDABLE
from asap.prediction.step_model.memory import StepMemory
from asap.prediction.uncertainty.calibration import AllocatorOverhead

Vector = NDArray[np.float64]

LOW, HIGH = 0.05, 0.95
SOURCE_POWER = 0.3  # n runs of a source weigh as n ** 0.3 independent ones
POINTS = 7  # of the grid, along each axis
REACH = 3  # half-width of the grid, in standard deviations of the prior

# Logarithms: where scale, reuse and the scale of the logistic distribution start, and how far they may go.
START = np.array([0.0, 0.3, np.log(0.08)])
SPREAD = np.array([0.1, 0.3, 0.5])


def fit_allocator_overheads(runs: Sequence[PublishedRun]) -> dict[str, AllocatorOverhead]:
    """The overhead of each allocator that best separates runs that fitted from runs that did not.

    What a TPU holds is fitted to what its compiler allocates, so published runs do not lower it. Expandable segments
    follow PyTorch's other runs (:meth:`Fit.overhead`).
    """
    by_allocator: dict[str, list[PublishedRun]] = defaultdict(list)
    for run in runs:
        by_allocator[allocator_of(run)].append(run)
    by_allocator.pop(EXPANDABLE, None)
    found = {allocator: _fit_one(own) for allocator, own in sorted(by_allocator.items())}
    if (planned := found.get("tpu")) is not None:
        found["tpu"] = planned.model_copy(update={"scale": max(planned.scale, 1.0)})
    return found


def _fit_one(runs: Sequence[PublishedRun]) -> AllocatorOverhead:
    from scipy.optimize import brute, fmin

    modelled = minimum_memory(runs)
    limit = np.asarray(stacked(runs).hardware.hbm_bytes)
    out_of_memory = np.array([run.out_of_memory for run in runs])
    held = np.array([run.memory_bytes or 0.0 for run in runs])
    counts = Counter(run.source for run in runs)
    weights = np.array([counts[run.source] ** (SOURCE_POWER - 1) for run in runs])

    def loss(theta: Vector) -> float:
        return float(
            (weights * _negative_log_likelihood(theta, modelled, limit, out_of_memory, held)).sum() + _prior(theta)
        )

    ranges = tuple(zip(START - REACH * SPREAD, START + REACH * SPREAD, strict=True))
    scale, reuse, width = np.exp(brute(loss, ranges, Ns=POINTS, finish=fmin))
    return AllocatorOverhead(
        scale=round(float(scale * np.exp(width * _logit(FIT_CONFIDENCE))), 3),
        reuse=round(float(reuse), 3),
        low=round(float(np.exp(width * (_logit(LOW) - _logit(FIT_CONFIDENCE)))), 3),
        high=round(float(np.exp(width * (_logit(HIGH) - _logit(FIT_CONFIDENCE)))), 3),
    )


def _negative_log_likelihood(
    theta: Vector, modelled: StepMemory, limit: Vector, out_of_memory: NDArray[np.bool_], held: Vector
) -> Vector:
    """Of each run; a run with a published peak has a density, the others a probability."""
    width = np.exp(theta[2])
    median = np.log(modelled.reserved(*np.exp(theta[:2])).total)
    free = (np.log(limit) - median) / width
    off = (np.log(np.where(held > 0, held, limit)) - median) / width
    density = off + 2 * np.logaddexp(0.0, -off) + theta[2]
    return np.where(held > 0, density, np.logaddexp(0.0, np.where(out_of_memory, free, -free)))


def _prior(theta: Vector) -> float:
    return float((((theta - START) / SPREAD) ** 2).sum() / 2)


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))
