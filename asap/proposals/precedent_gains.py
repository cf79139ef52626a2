"""What past optimizations add to the expected gain of a plan."""

import math
from collections.abc import Sequence

from asap.history import HistoryHit, precedent_prior, precedent_weight
from asap.plans import Plan
from asap.prediction.profile_scaling.plan_distance import spread
from asap.proposals.precedents import SIMILAR_RUNS, similar_runs
from asap.study.study import Study


def precedent_gains(study: Study, plans: Sequence[Plan]) -> dict[Plan, float]:
    """Gain in ``ln(step time)`` that precedents add to each plan, negative where they speak against it.

    The mean gain of the precedents that made the same move, each by its weight, shrunk towards none as if one run of
    full weight had seen no effect.
    """
    if study.plan is None:
        return {}
    hits = [hit for hit in similar_runs(study, SIMILAR_RUNS) if precedent_weight(hit)]
    return {plan: _gain(hits, study.plan, plan) for plan in plans}


def _gain(hits: Sequence[HistoryHit], current: Plan, plan: Plan) -> float:
    weights = [precedent_prior(hit, current, plan) for hit in hits]
    total = sum(abs(weight) for weight in weights)
    return sum(weight * _effect(hit) for weight, hit in zip(weights, hits, strict=True)) / (1 + total)


def _effect(hit: HistoryHit) -> float:
    """How much faster or slower it went; what ran out of memory counts as the worst that one doubling does."""
    return abs(math.log(hit.record.speedup)) if hit.record.speedup else spread(1)
