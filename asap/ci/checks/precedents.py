"""The past change of plan that a change repeats or resembles, failures before successes."""

from asap.ci.report import Precedent
from asap.core.text import plain
from asap.history import precedent_prior
from asap.proposals.selection.precedents import LEAST_WEIGHT, SIMILAR_RUNS, precedent_sentence, similar_runs
from asap.study.study import Study


def strongest_precedent(before: Study, after: Study) -> Precedent | None:
    """The weightiest precedent of such a change of plan, failures first; ``None`` if none is similar enough."""
    if before.plan is None or after.plan is None or before.plan == after.plan:
        return None
    weighed = [(precedent_prior(hit, before.plan, after.plan), hit) for hit in similar_runs(before, SIMILAR_RUNS)]
    relevant = [(weight, hit) for weight, hit in weighed if abs(weight) >= LEAST_WEIGHT]
    if not relevant:
        return None
    _, hit = min(relevant, key=lambda pair: (pair[0] > 0, -abs(pair[0])))
    record = hit.record
    return Precedent(
        id=record.id,
        title=plain(record.title, 400),
        outcome=record.outcome.value,
        supports=plain(precedent_sentence(hit, before.plan, after.plan), 500),
    )
