"""Rank candidates by what their gain is worth after doubt, and choose the best of each strategy.

The score is the expected gain in ``ln(step time)`` with what precedents add, after doubt (:mod:`asap.proposals.doubt`).
Where the run does not fit into HBM, plans that fit are ranked by step time, and each change costs something.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from asap.core.provenance import Quantity
from asap.levers.table import changed_levers
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals.doubt import after_doubt, log_interval
from asap.proposals.strategy import ALONE, strategy

COUNT = 3
MEASURABLE = 0.01
"""Gain in ``ln(step time)`` below which a plan is no proposal: medians of two short runs differ by as much."""
SAME_HBM = 0.1
"""Share of HBM within which two plans need the same."""
SMALLEST_CHANGE = 0.2
"""What each changed lever counts where a run does not fit: there the smallest change is sought, and a further one has
to pay with a fifth of the step. A judgement, like the number of proposals."""


@dataclass(frozen=True)
class Candidate:
    """A plan with its prediction and its score.

    Args:
        prediction: of the plan.
        score: what decides the order, in ``ln(step time)``.
        strategy: what most of its gain comes from; found from the changes where the search did not say.
        precedent: what precedents add to its gain.
        makes_fit: it fits where the plan that runs does not.
    """

    prediction: Prediction
    score: float
    strategy: str = ""
    precedent: float = 0.0
    makes_fit: bool = False

    @property
    def plan(self) -> Plan:
        """The plan that is predicted."""
        return self.prediction.plan


def expected_gain(prediction: Prediction) -> float:
    """``ln`` of how many times faster than the incumbent a plan is expected to be."""
    relative = prediction.relative_step_time
    return 0.0 if relative is None else -math.log(relative.value)


def with_prediction(candidate: Candidate, prediction: Prediction) -> Candidate:
    """The candidate with another prediction, and its score changed by what that is worth after doubt."""
    before, after = candidate.prediction.relative_step_time, prediction.relative_step_time
    if before is None or after is None:
        return replace(candidate, prediction=prediction)
    moved = _worth(after, candidate.precedent) - _worth(before, candidate.precedent)
    return replace(candidate, prediction=prediction, score=candidate.score + moved)


def rank(
    predictions: Iterable[Prediction],
    incumbent: Plan | None,
    priors: Mapping[Plan, float] | None = None,
    strategies: Mapping[Plan, str] | None = None,
    fits_now: bool = True,
) -> list[Candidate]:
    """Best first. The incumbent itself is left out, and plans that do not fit come after all that do.

    Args:
        predictions: one per plan.
        incumbent: what runs now; without it, plans are ranked by absolute step time.
        priors: gain in ``ln(step time)`` that precedents add or take.
        strategies: what most of a plan's gain comes from.
        fits_now: whether the incumbent fits into HBM.
    """
    added, named = priors or {}, strategies or {}
    candidates = [
        Candidate(
            prediction,
            _score(prediction, incumbent, added.get(prediction.plan, 0.0), fits_now),
            named.get(prediction.plan, ""),
            added.get(prediction.plan, 0.0),
            not fits_now and fits(prediction),
        )
        for prediction in predictions
        if prediction.plan != incumbent
    ]
    return sorted(candidates, key=lambda c: (not fits(c.prediction), -c.score, str(c.plan)))


def choose(candidates: list[Candidate], incumbent: Plan | None, count: int = COUNT) -> list[Candidate]:
    """The best of each strategy, at most ``count``; what gains nothing measurable or does not fit is left out."""
    fitting = [candidate for candidate in candidates if fits(candidate.prediction)]
    if incumbent is None:
        return fitting[:count]
    chosen: list[Candidate] = []
    for candidate in fitting:
        if len(chosen) < count and is_worth(candidate) and not any(_same(candidate, c, incumbent) for c in chosen):
            chosen.append(candidate)
    return sorted(chosen, key=lambda candidate: -candidate.score)


def fits(prediction: Prediction) -> bool:
    """Whether a plan fits into HBM, as far as that can be predicted."""
    return prediction.memory is None or prediction.memory.fits


def changes_of(plan: Plan, incumbent: Plan) -> int:
    """Levers that differ; a mesh counts as one."""
    return len(changed_levers(plan, incumbent)) + ((plan.ici, plan.dcn) != (incumbent.ici, incumbent.dcn))


def _score(prediction: Prediction, incumbent: Plan | None, precedent: float, fits_now: bool) -> float:
    relative, step = prediction.relative_step_time, prediction.step_time
    if incumbent is None or relative is None:
        return -math.log(step.value) if step else 0.0
    worth = _worth(relative, precedent)
    return worth if fits_now else worth - SMALLEST_CHANGE * changes_of(prediction.plan, incumbent)


def _worth(relative: Quantity, precedent: float) -> float:
    gain, half_width = log_interval(relative)
    return after_doubt(gain + precedent, half_width)


def is_worth(candidate: Candidate) -> bool:
    """Whether the gain could be measured; by ratios of a profile, whose figures are wide, whether there is one."""
    if candidate.makes_fit or candidate.prediction.relative_step_time is None:
        return True
    gain = expected_gain(candidate.prediction) + candidate.precedent
    return gain > 0 if candidate.prediction.method == "profile_ratios" else gain >= MEASURABLE


def _same(one: Candidate, better: Candidate, incumbent: Plan) -> bool:
    """Whether two plans are one idea: of one strategy, or apart by what moves nothing measurable."""
    mine, others = _strategy(one, incumbent), _strategy(better, incumbent)
    if mine.removesuffix(ALONE) == others.removesuffix(ALONE):
        return mine == others or not mine.endswith(ALONE)
    if one.makes_fit:
        further = len(set(mine.split("+")) - set(others.split("+")))
        contains = set(mine.split("+")) > set(others.split("+"))
        return contains and one.score + further * SMALLEST_CHANGE < better.score + MEASURABLE
    if one.prediction.method == "profile_ratios" or changed_levers(one.plan, better.plan):
        return False
    slower = expected_gain(better.prediction) - expected_gain(one.prediction)
    return abs(slower) < MEASURABLE and abs(_hbm(one) - _hbm(better)) < SAME_HBM


def _strategy(candidate: Candidate, incumbent: Plan) -> str:
    return candidate.strategy or ", ".join(sorted(f"{way} {what}" for what, way in strategy(candidate.plan, incumbent)))


def _hbm(candidate: Candidate) -> float:
    memory = candidate.prediction.memory
    return memory.total.value / memory.capacity_bytes if memory else 0.0
