"""Published groups as tuning problems: how many shardings have to be run until one is nearly the best.

The proposer of ``asap optimize`` chooses what to run next; each result corrects its predictions of the rest.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import Provenance
from asap.evidence.step_belief import prior_of
from asap.optimize.outcome import Outcome, Try
from asap.optimize.proposers.model_guided import ModelGuided
from asap.plans import Plan
from asap.plans.plan import SETTINGS
from asap.prediction.step_model.step_parts import change_between
from asap.prediction.uncertainty.residual_kernel import ResidualKernel, ResidualTransfer, Widths
from asap.proposals.selection.candidate import after_doubt_of_each
from asap.proposals.selection.choice import MEASURABLE

Vector = NDArray[np.float64]

CLOSE = 0.02  # of the best measured: two short runs differ by 1 % each
SHARDINGS = 4  # that a group needs to be a search; judgement: which groups are scored


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


class Advice(BaseModel):
    """Regret of the first proposal, over groups in which settings beside the mesh vary. Fractions."""

    model_config = ConfigDict(frozen=True)

    groups: int
    sources: int
    mean_regret: float | None = Field(default=None, description="mean over groups, of each the mean over its runs")
    macro_regret: float | None = Field(default=None, description="mean over sources of the mean over their groups")
    regret_now: float | None = Field(default=None, description="mean over groups, if every run stays as it is")


def settings_vary(plans: Sequence[Plan]) -> bool:
    """Whether plans differ in more than their meshes."""
    return any(len({getattr(plan, name) for plan in plans}) > 1 for name in SETTINGS)


def first_proposal(problem: TuningProblem, now: int) -> int:
    """The plan to run next if the one at ``now`` runs, or that one."""
    steps = list(problem.parts.T), list(problem.parts[now])
    change, moved = change_between(*steps), change_between(*steps, recomputed=False)
    missed = float(np.log(problem.measured[now] / problem.predicted[now]))
    gain = np.log(problem.measured[now] / problem.predicted) - problem.transfer.expected(missed, moved)
    width = np.where(np.arange(len(gain)) == now, 0.0, problem.widths.at_each(np.asarray(change)))
    worth = np.where(gain >= MEASURABLE, after_doubt_of_each(gain, width), 0.0)
    best = int(np.argmax(worth))
    return best if worth[best] > 0 else now


def score_advice(problems: Sequence[TuningProblem]) -> Advice:
    """Over the groups whose settings vary."""
    lost: dict[str, list[float]] = defaultdict(list)
    present = []
    for problem in problems:
        if settings_vary(problem.plans):
            over_best = problem.measured / problem.measured.min() - 1
            chosen = [first_proposal(problem, now) for now in range(len(problem.plans))]
            lost[problem.source].append(float(over_best[chosen].mean()))
            present.append(float(over_best.mean()))
    if not present:
        return Advice(groups=0, sources=0)
    each = [np.mean(regrets) for regrets in lost.values()]
    return Advice(
        groups=len(present),
        sources=len(lost),
        mean_regret=round(float(np.mean(np.concatenate(list(lost.values())))), 4),
        macro_regret=round(float(np.mean(each)), 4),
        regret_now=round(float(np.mean(present)), 4),
    )
