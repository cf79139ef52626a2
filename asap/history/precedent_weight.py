"""The weight of a precedent for or against a plan that changes in the same direction.

It is the product of three factors. Similarity of the runs: 0.5 is neutral and weighs 0, 1 weighs 1, linear in between.
Confidence that the change made the difference, from the record. Similarity of the moves: the cosine of both changes of
plan in doublings by axis. Failures weigh against.
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


def move_similarity(record: HistoryRecord, current: Plan, candidate: Plan) -> float:
    """0 to 1: how similar the move from ``current`` to ``candidate`` is to that of the record.

    1 for the same move (whatever the degrees it starts from), 0 for a move along other axes, the opposite one, or
    a record that changed something else than the plan.
    """
    if record.before is None or record.after is None:
        return 0.0
    precedent, proposed = _move(record.before, record.after), _move(current, candidate)
    lengths = math.hypot(*precedent) * math.hypot(*proposed)
    return max(0.0, sum(a * b for a, b in zip(precedent, proposed, strict=True)) / lengths) if lengths else 0.0


def precedent_prior(hit: HistoryHit, current: Plan, candidate: Plan) -> float:
    """-1 to 1: :func:`precedent_weight` × :func:`move_similarity`; above 0 the precedent speaks for the candidate."""
    return precedent_weight(hit) * move_similarity(hit.record, current, candidate)


def _move(before: Plan, after: Plan) -> list[float]:
    return [math.log2(after.degree(axis) / before.degree(axis)) for axis in AXES]
