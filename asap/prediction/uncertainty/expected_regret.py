"""How far each choice among candidates is expected to stay behind the fastest of them.

The model's own belief: residuals go together as those of published runs do
(:mod:`asap.prediction.uncertainty.residual_kernel`), and are drawn many times over all candidates.
"""

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from asap.prediction.prediction import Prediction
from asap.prediction.uncertainty.calibration import load_calibration
from asap.prediction.uncertainty.residual_kernel import plan_distances

MOST = 40
"""Candidates among which the best may be; the others are slower by the model than these."""
DRAWS = 2_000


class ExpectedRegret(BaseModel):
    """Of the first choice alone, and of the fastest of some that are measured. Fractions; modelled."""

    model_config = ConfigDict(frozen=True)

    runs: int = Field(description="that are measured, the first ones")
    of_first: float = Field(ge=0, description="expected share by which the first takes longer than the fastest of all")
    after: float = Field(ge=0, description="the same of the fastest of those that were measured")


def expected_regret(first: Sequence[Prediction], others: Sequence[Prediction], seed: int = 0) -> ExpectedRegret | None:
    """The regret; ``None`` where fewer than two are measured.

    Args:
        first: what is measured, in its order; each with a step time.
        others: further candidates, each with a step time; those that are among the first do not count twice.
        seed: of the draws.
    """
    if len(first) < 2:
        return None
    plans = {each.plan for each in first}
    further = [each for each in others if each.plan not in plans]
    fair = all(each.relative_step_time for each in (*first, *further))
    time = per_token if fair else seconds
    every = [*first, *sorted(further, key=time)[: MOST - len(first)]]
    kernel = load_calibration().full.residual_kernel
    apart = np.array([[plan_distances(one.plan, other.plan) for other in every] for one in every]).swapaxes(1, 2)
    covariance = kernel.shared(apart[:, apart.any(axis=(0, 2))]) + (kernel.own**2 + 1e-9) * np.eye(len(every))
    drawn = np.random.default_rng(seed).multivariate_normal(np.zeros(len(every)), covariance, DRAWS, method="cholesky")
    steps = np.log([time(each) for each in every]) + drawn
    best = steps.min(axis=1)
    return ExpectedRegret(
        runs=len(first),
        of_first=float(np.expm1(steps[:, 0] - best).mean()),
        after=float(np.expm1(steps[:, : len(first)].min(axis=1) - best).mean()),
    )


def seconds(prediction: Prediction) -> float:
    """The step time of a prediction that has one."""
    assert prediction.step_time is not None, "only predictions with a step time are drawn"
    return prediction.step_time.value


def per_token(prediction: Prediction) -> float:
    """Step time over the incumbent's for as many tokens, of a prediction that has it."""
    assert prediction.relative_step_time is not None, "asked only where each has it"
    return prediction.relative_step_time.value
