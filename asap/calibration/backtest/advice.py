"""Published groups as advice: what the first proposal loses against the best run of its group.

Every run of a group is taken for the one that runs now: measured, with the other plans predicted from it as a what-if.
What counts most after doubt is run next, or nothing where no gain could be measured.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from asap.calibration.backtest.loop import TuningProblem
from asap.plans import Plan
from asap.plans.plan import SETTINGS
from asap.prediction.step_model.step_parts import change_between
from asap.proposals.selection.candidate import after_doubt_of_each
from asap.proposals.selection.choice import MEASURABLE


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
    change = change_between(list(problem.parts.T), list(problem.parts[now]))
    missed = float(np.log(problem.measured[now] / problem.predicted[now]))
    gain = np.log(problem.measured[now] / problem.predicted) - problem.transfer.expected(missed, change)
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
