"""What measuring the first three candidates costs, and how far each choice is expected to stay behind the best plan.

The expected regret is that of the model's own belief: its residuals go together as those of published runs do
(:mod:`asap.prediction.uncertainty.residual_kernel`), and are drawn many times over all candidates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from asap.core.units import format_percent, format_seconds, significant
from asap.prediction.prediction import Prediction
from asap.prediction.uncertainty.calibration import load_calibration
from asap.prediction.uncertainty.plan_distances import plan_distances
from asap.proposals.test_worth import WARM_UP_STEPS

STEPS = 20
MOST = 40
"""Candidates among which the best may be; the others are slower by the model than these."""
DRAWS = 2_000
_HOUR = 3600.0


@dataclass(frozen=True)
class FirstThree:
    """Short runs of the most promising configurations.

    Args:
        runs: how many.
        seconds: of all of them together.
        chip_hours: of all of them together.
        regret_of_first: expected share by which the first takes longer than the best candidate.
        regret_after: the same of the fastest of those that were measured.
    """

    runs: int
    seconds: float
    chip_hours: float
    regret_of_first: float
    regret_after: float

    @property
    def statement(self) -> str:
        """The offer in a sentence."""
        cost = f"{format_seconds(self.seconds)}, {significant(self.chip_hours, 2)} chip-hours beside start-up"
        first, after = format_percent(self.regret_of_first), format_percent(self.regret_after)
        return (
            f"Measure the first {self.runs} (--evaluate run --budget {self.runs}): {WARM_UP_STEPS + STEPS} steps each,"
            f" {cost}. The best alone is expected to lie {first} behind the fastest of all, the fastest of"
            f" {self.runs} that were measured {after}."
        )


def first_three(candidates: Sequence[Prediction], chips: int, seed: int = 0) -> FirstThree | None:
    """The offer; ``None`` where there are not two candidates with a step time.

    Args:
        candidates: in their order.
        chips: of the run.
        seed: of the draws.
    """
    timed = [each for each in candidates if each.step_time is not None]
    first, others = timed[:3], sorted(timed[3:], key=_seconds)[: MOST - 3]
    if len(first) < 2:
        return None
    every = [*first, *others]
    kernel = load_calibration().full.residual_kernel
    apart = np.array([[plan_distances(one.plan, other.plan) for other in every] for one in every]).swapaxes(1, 2)
    differing = apart[:, apart.any(axis=(0, 2))]
    covariance = kernel.shared(differing) + (kernel.own**2 + 1e-9) * np.eye(len(every))
    drawn = np.random.default_rng(seed).multivariate_normal(np.zeros(len(every)), covariance, DRAWS, method="cholesky")
    steps = np.log([_seconds(each) for each in every]) + drawn
    best = steps.min(axis=1)
    seconds = sum(_seconds(each) for each in first) * (WARM_UP_STEPS + STEPS)
    return FirstThree(
        runs=len(first),
        seconds=seconds,
        chip_hours=chips * seconds / _HOUR,
        regret_of_first=float(np.expm1(steps[:, 0] - best).mean()),
        regret_after=float(np.expm1(steps[:, : len(first)].min(axis=1) - best).mean()),
    )


def _seconds(prediction: Prediction) -> float:
    assert prediction.step_time is not None, "only predictions with a step time are drawn"
    return prediction.step_time.value
