"""Whether runs that were said to fit with some probability fitted as often: by allocator, sources left out.

Runs that fitted are published far more often than runs that ran out of memory, so a class of probability holds more of
the former than users see; what ran out of memory is therefore counted beside.
"""

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from asap.calibration.dataset.runs import PublishedRun
from asap.calibration.fit.predicted_runs import allocator_of, reserved_bytes, stacked
from asap.prediction.uncertainty.calibration import Fit

CLASSES = ((0.0, 0.3), (0.3, 0.7), (0.7, 0.9), (0.9, 0.99), (0.99, 1.0))


class Reliability(BaseModel):
    """Runs of one allocator that were said to fit with a probability in one class."""

    model_config = ConfigDict(frozen=True)

    allocator: str
    low: float
    high: float
    runs: int
    sources: int
    said: float = Field(description="mean of the probabilities, every source weighing the same")
    fitted: float = Field(description="share that fitted, every source weighing the same")
    out_of_memory: int


def reliability(runs: Sequence[PublishedRun], fits: Sequence[Fit]) -> tuple[Reliability, ...]:
    """A row for each allocator and class of probability in which there are runs.

    Args:
        runs: that fitted or ran out of memory.
        fits: of each, one that never saw its source.
    """
    reserved, limit = reserved_bytes(runs, fits), np.asarray(stacked(runs).hardware.hbm_bytes)
    kinds, names = [allocator_of(run) for run in runs], np.array([run.source for run in runs])
    said = np.array(
        [
            float(fit.overhead(kind).probability_fits(held, capacity))
            for fit, kind, held, capacity in zip(fits, kinds, reserved, limit, strict=True)
        ]
    )
    died = np.array([run.out_of_memory for run in runs])
    found = []
    for kind in sorted(set(kinds)):
        own = np.array([each == kind for each in kinds])
        for low, high in CLASSES:
            rows = np.flatnonzero(own & (said >= low) & ((said < high) | (high == 1.0)))
            if len(rows):
                found.append(_row(kind, low, high, said[rows], died[rows], names[rows]))
    return tuple(found)


def _row(kind: str, low: float, high: float, said: np.ndarray, died: np.ndarray, names: np.ndarray) -> Reliability:
    sources = sorted(set(names))
    of_each = [names == name for name in sources]
    return Reliability(
        allocator=kind, low=low, high=high, runs=len(said), sources=len(sources), out_of_memory=int(died.sum()),
        said=round(float(np.mean([said[rows].mean() for rows in of_each])), 3),
        fitted=round(float(np.mean([1 - died[rows].mean() for rows in of_each])), 3),
    )  # fmt: skip
