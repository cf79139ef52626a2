"""Rank candidates by what their gain is worth after doubt, and choose the best of each strategy.

The score is the expected gain in ``ln(step time)`` with what precedents add, after doubt (:mod:`asap.proposals.doubt`).
Where the run does not fit into HBM, it is the upper end of the step time's interval over the probability that the plan
fits: the further a change goes, the less is known of it, so of two that are as fast the smaller one comes first.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from asap.levers.table import changed_levers
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals.doubt import after_doubt, log_interval
from asap.proposals.strategy import ALONE, strategy

COUNT = 3
MEASURABLE = 0.01
"""Gain in ``ln(step time)`` below which a plan is no proposal: medians of two short runs differ by as much."""
LEAST_ODDS = 1e-9
"""Least probability that a plan fits: no model is surer than that."""
LEAST_WORTH = 0.001
"""Gain after doubt below which a plan is no proposal: reports would round it to nothing."""
SAME_HBM = 0.1
"""Share of HBM within which two plans need the same."""


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
    """The candidate with another prediction, and the score that it gives."""
    if prediction.relative_step_time is None:
        return replace(candidate, prediction=prediction)
    return replace(candidate, prediction=prediction, score=_worth(prediction, candidate.precedent, candidate.makes_fit))


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
    """The best of each strategy, at most ``count``; what gains nothing measurable or does not fit is left out.

    Where the run does not fit, one of those that change the fewest settings is among them.
    """
    fitting = [candidate for candidate in candidates if fits(candidate.prediction)]
    if incumbent is None:
        return fitting[:count]
    chosen: list[Candidate] = []
    for candidate in fitting:
        if len(chosen) < count and is_worth(candidate) and not any(_same(candidate, c, incumbent) for c in chosen):
            chosen.append(candidate)
    smallest = _smallest_changes([candidate for candidate in fitting if candidate.makes_fit], incumbent)
    if smallest and not any(candidate in smallest for candidate in chosen):
        chosen = [*chosen[: count - 1], smallest[0]]
    return sorted(chosen, key=lambda candidate: -candidate.score)


def fits(prediction: Prediction) -> bool:
    """Whether a plan fits into HBM, as far as that can be predicted."""
    return prediction.memory is None or prediction.memory.fits


def fit_odds(prediction: Prediction) -> float:
    """The probability that a plan fits into HBM; 1 where nothing is predicted, or it is known to fit."""
    memory = prediction.memory
    return 1.0 if memory is None or memory.probability_fits is None else max(memory.probability_fits, LEAST_ODDS)


def changes_of(plan: Plan, incumbent: Plan) -> int:
    """Levers that differ; a mesh counts as one."""
    return len(changed_levers(plan, incumbent)) + ((plan.ici, plan.dcn) != (incumbent.ici, incumbent.dcn))


def _smallest_changes(candidates: list[Candidate], incumbent: Plan) -> list[Candidate]:
    """Of candidates, best first, those that change the fewest settings."""
    counts = [changes_of(candidate.plan, incumbent) for candidate in candidates]
    return [candidate for candidate, count in zip(candidates, counts, strict=True) if count == min(counts)]


def _score(prediction: Prediction, incumbent: Plan | None, precedent: float, fits_now: bool) -> float:
    step = prediction.step_time
    if incumbent is None or prediction.relative_step_time is None:
        return -math.log(step.value) if step else 0.0
    return _worth(prediction, precedent, makes_fit=not fits_now)


def _worth(prediction: Prediction, precedent: float, makes_fit: bool) -> float:
    assert prediction.relative_step_time is not None
    gain, half_width = log_interval(prediction.relative_step_time)
    odds = fit_odds(prediction)
    return (
        gain + precedent - half_width + math.log(odds) if makes_fit else after_doubt(gain + precedent, half_width, odds)
    )


def is_worth(candidate: Candidate) -> bool:
    """Whether the gain could be measured, and counts; by ratios of a profile, which are wide, whether there is one."""
    if candidate.makes_fit or candidate.prediction.relative_step_time is None:
        return True
    gain = expected_gain(candidate.prediction) + candidate.precedent
    if candidate.prediction.method == "profile_ratios":
        return gain > 0
    return gain >= MEASURABLE and candidate.score >= LEAST_WORTH


def _same(one: Candidate, better: Candidate, incumbent: Plan) -> bool:
    """Whether two plans are one idea: of one strategy, or apart by what moves nothing measurable."""
    mine, others = _strategy(one, incumbent), _strategy(better, incumbent)
    if mine.removesuffix(ALONE) == others.removesuffix(ALONE):
        return mine == others or not mine.endswith(ALONE)
    if one.makes_fit:
        contains = set(mine.split("+")) > set(others.split("+"))
        return contains and expected_gain(one.prediction) < expected_gain(better.prediction) + MEASURABLE
    if _is_part_of(one.plan, better.plan, incumbent):
        return True
    if one.prediction.method == "profile_ratios" or changed_levers(one.plan, better.plan):
        return False
    slower = expected_gain(better.prediction) - expected_gain(one.prediction)
    return abs(slower) < MEASURABLE and abs(_hbm(one) - _hbm(better)) < SAME_HBM


def _is_part_of(plan: Plan, better: Plan, incumbent: Plan) -> bool:
    """Whether a plan has the other mesh of a better one, and no change that the better one lacks."""
    if (plan.ici, plan.dcn) != (better.ici, better.dcn) or (plan.ici, plan.dcn) == (incumbent.ici, incumbent.dcn):
        return False
    return set(strategy(plan, incumbent)) <= set(strategy(better, incumbent))


def _strategy(candidate: Candidate, incumbent: Plan) -> str:
    return candidate.strategy or ", ".join(sorted(f"{way} {what}" for what, way in strategy(candidate.plan, incumbent)))


def _hbm(candidate: Candidate) -> float:
    memory = candidate.prediction.memory
    return memory.total.value / memory.capacity_bytes if memory else 0.0
