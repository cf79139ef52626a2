"""Published groups as tuning problems: how many shardings have to be run until one is nearly the best.

Each run that is evaluated corrects the predictions of the rest as a what-if does: from the nearest evaluated plan, the
part of its residual that plans so far apart share.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from asap.plans import Plan
from asap.prediction.uncertainty.calibration import Widths
from asap.prediction.uncertainty.residual_transfer import ResidualTransfer, plan_distance

Vector = NDArray[np.float64]

CLOSE = 0.02
SHARDINGS = 4  # that a group needs


class Loop(BaseModel):
    """Evaluations until within 2 % of the best measured, over groups of four or more shardings."""

    model_config = ConfigDict(frozen=True)

    groups: int
    mean_evaluations: float | None = None
    worst_evaluations: int | None = None
    within_first: float | None = Field(default=None, description="share of groups that need one evaluation")


@dataclass(frozen=True)
class TuningProblem:
    """The shardings of a group: plans, predicted and measured seconds; transfer and widths of the fit that predicts."""

    source: str
    plans: Sequence[Plan]
    predicted: Vector
    measured: Vector
    transfer: ResidualTransfer
    widths: Widths


def evaluations(problem: TuningProblem) -> int:
    """How many shardings are run, the fastest predicted first, until one is within 2 % of the best measured."""
    plans, measured = problem.plans, problem.measured
    distance = np.array([[plan_distance(one, other) for other in plans] for one in plans])
    residual = np.log(measured / problem.predicted)
    done: list[int] = []
    while True:
        expected = np.log(problem.predicted)
        if done:
            nearest = np.array(done)[np.argmin(distance[done], axis=0)]
            apart = distance[nearest, np.arange(len(plans))]
            expected = expected + problem.transfer.expected(residual[nearest], apart)
            expected[done] = np.inf
        done.append(int(np.argmin(expected)))
        if measured[done[-1]] <= measured.min() * (1 + CLOSE):
            return len(done)


def score_loop(problems: Sequence[TuningProblem]) -> Loop:
    """Over problems with enough shardings."""
    counts = [evaluations(problem) for problem in problems if len(problem.plans) >= SHARDINGS]
    if not counts:
        return Loop(groups=0)
    return Loop(
        groups=len(counts),
        mean_evaluations=round(float(np.mean(counts)), 4),
        worst_evaluations=max(counts),
        within_first=round(float(np.mean([count == 1 for count in counts])), 4),
    )
