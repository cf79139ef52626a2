"""What a precedent is worth as a prior: how much it speaks for or against a plan that goes the same way.

A prior multiplies three doubts. Is the run like this one? A similarity of 0.5 says nothing and weighs 0, one of 1
weighs 1, and what lies between is linear. Was it the change that made the difference? The record's confidence. Does
the plan at hand make the same move? The cosine of both moves in doublings by axis. What failed weighs against.
"""

import math

from asap.history.query import NEUTRAL
from asap.history.record import HistoryRecord, Outcome
from asap.history.search import HistoryHit
from asap.plans import AXES, Plan


def precedent_weight(hit: HistoryHit) -> float:
    """-1 to 1: confidence × (2 × similarity − 1), not below zero; negative for what got slower or did not fit."""
    likeness = max(0.0, (hit.similarity - NEUTRAL) / (1 - NEUTRAL))
    sign = 1.0 if hit.record.outcome is Outcome.IMPROVED else -1.0
    return sign * hit.record.confidence * likeness + 0.0


def agreement(record: HistoryRecord, current: Plan, candidate: Plan) -> float:
    """0 to 1: whether going from ``current`` to ``candidate`` is the move that the record tells of.

    1 for the same move (whatever the degrees it starts from), 0 for a move along other axes, the opposite one, or
    a record that changed something else than the plan.
    """
    if record.before is None or record.after is None:
        return 0.0
    precedent, proposed = _move(record.before, record.after), _move(current, candidate)
    lengths = math.hypot(*precedent) * math.hypot(*proposed)
    return max(0.0, sum(a * b for a, b in zip(precedent, proposed, strict=True)) / lengths) if lengths else 0.0


def precedent_prior(hit: HistoryHit, current: Plan, candidate: Plan) -> float:
    """-1 to 1: :func:`precedent_weight` × :func:`agreement`; above 0 the precedent speaks for the candidate."""
    return precedent_weight(hit) * agreement(hit.record, current, candidate)


def _move(before: Plan, after: Plan) -> list[float]:
    return [math.log2(after.degree(axis) / before.degree(axis)) for axis in AXES]
