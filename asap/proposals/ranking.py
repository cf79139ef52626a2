"""Rank candidates by expected gain, less a margin for uncertainty.

The score is the expected gain in ``ln(step time)``, less the step-time variation for every doubling between plan and
incumbent, plus what precedents add. A plan far from the incumbent has to promise more.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.prediction.profile_scaling.plan_distance import weighted_doublings
from asap.proposals.strategy import strategy

COUNT = 3


@dataclass(frozen=True)
class Candidate:
    """A plan with its prediction and its score."""

    prediction: Prediction
    score: float

    @property
    def plan(self) -> Plan:
        """The plan that is predicted."""
        return self.prediction.plan


def expected_gain(prediction: Prediction) -> float:
    """``ln`` of how many times faster than the incumbent a plan is expected to be."""
    relative = prediction.relative_step_time
    return 0.0 if relative is None else -math.log(relative.value)


def rank(
    predictions: Iterable[Prediction], incumbent: Plan | None, priors: Mapping[Plan, float] | None = None
) -> list[Candidate]:
    """Best first. The incumbent itself is left out, and plans that do not fit come after all that do.

    Args:
        predictions: one per plan.
        incumbent: what runs now; without it, plans are ranked by absolute step time.
        priors: gain in ``ln(step time)`` that precedents add or take.
    """
    candidates = [
        Candidate(prediction, _score(prediction, incumbent) + (priors or {}).get(prediction.plan, 0.0))
        for prediction in predictions
        if prediction.plan != incumbent
    ]
    return sorted(candidates, key=lambda c: (not fits(c.prediction), -c.score, str(c.plan)))


def choose(candidates: list[Candidate], incumbent: Plan | None, count: int = COUNT) -> list[Candidate]:
    """The best of each strategy, then the next best of any, up to ``count``; plans that do not fit are left out."""
    fitting = [candidate for candidate in candidates if fits(candidate.prediction)]
    if incumbent is None:
        return fitting[:count]
    best: dict[frozenset[tuple[str, str]], Candidate] = {}
    for candidate in fitting:
        best.setdefault(strategy(candidate.plan, incumbent), candidate)
    chosen = list(best.values())[:count]
    chosen += [candidate for candidate in fitting if candidate not in chosen][: count - len(chosen)]
    return sorted(chosen, key=lambda candidate: -candidate.score)


def _score(prediction: Prediction, incumbent: Plan | None) -> float:
    if incumbent is None:
        step = prediction.step_time
        return -math.log(step.value) if step else 0.0
    return expected_gain(prediction) - STEP_TIME_VARIATION * weighted_doublings(prediction.plan, incumbent)


def fits(prediction: Prediction) -> bool:
    """Whether a plan fits into HBM, as far as that can be predicted."""
    return prediction.memory is None or prediction.memory.fits
