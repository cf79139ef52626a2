"""Published groups as tuning problems: how many shardings have to be run until one is nearly the best.

The proposer of ``asap optimize`` chooses what to run next; each result corrects its predictions of the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from asap.core.provenance import Provenance
from asap.evidence.step_belief import prior_of
from asap.optimize.outcome import Outcome, Try
from asap.optimize.proposers.model_guided import ModelGuided
from asap.plans import Plan
from asap.prediction.uncertainty.plan_widths import Widths
from asap.prediction.uncertainty.residual_kernel import ResidualKernel
from asap.prediction.uncertainty.residual_transfer import ResidualTransfer

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
    """The shardings of a group: plans that differ, predicted and measured seconds; what the fit says of residuals, and
    the parts of each predicted step, of shape (plans, parts)."""

    source: str
    plans: Sequence[Plan]
    predicted: Vector
    measured: Vector
    transfer: ResidualTransfer
    widths: Widths
    kernel: ResidualKernel
    parts: Vector


def evaluations(problem: TuningProblem) -> int:
    """How many shardings are run until one is within 2 % of the best measured."""
    measured = dict(zip(map(str, problem.plans), map(float, problem.measured), strict=True))
    proposer = ModelGuided(prior_of(problem.plans, problem.predicted, problem.parts), problem.kernel)
    good, tries = min(measured.values()) * (1 + CLOSE), list[Try]()
    while not any(measured[each.configuration] <= good for each in tries):
        suggestion = proposer.propose(tries)
        assert suggestion is not None, "the proposer ends when all were tried, and one of them is good"
        plan = suggestion.configuration
        outcome = Outcome(status="done", step_time_s=measured[plan], provenance=Provenance.MEASURED)
        tries.append(Try(number=len(tries) + 1, configuration=plan, why=suggestion.why, outcome=outcome))
    return len(tries)


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
