"""Which past change a change of plan repeats or resembles: a known failure before a known success."""

from asap.ci.report import Precedent
from asap.core.text import plain
from asap.core.units import significant
from asap.diagnosis.study import Study
from asap.history import HistoryHit, agreement, precedent_prior
from asap.history.record import Outcome
from asap.plans import Plan
from asap.proposals.cite import EXACTLY, SIMILAR_RUNS, WORTH_TELLING, similar_runs

_WENT = {
    Outcome.IMPROVED: "was faster",
    Outcome.SLOWER: "was slower",
    Outcome.OUT_OF_MEMORY: "ran out of memory",
}


def repeated(before: Study, after: Study) -> Precedent | None:
    """The precedent of such a move that weighs most, failures first; ``None`` if none is similar enough."""
    if before.plan is None or after.plan is None or before.plan == after.plan:
        return None
    weighed = [(precedent_prior(hit, before.plan, after.plan), hit) for hit in similar_runs(before, SIMILAR_RUNS)]
    telling = [(weight, hit) for weight, hit in weighed if abs(weight) >= WORTH_TELLING]
    if not telling:
        return None
    _, hit = min(telling, key=lambda pair: (pair[0] > 0, -abs(pair[0])))
    return _precedent(hit, before.plan, after.plan)


def _precedent(hit: HistoryHit, before: Plan, after: Plan) -> Precedent:
    record = hit.record
    same = agreement(record, before, after) > EXACTLY
    move = "The same move" if same else f"A move of a similar direction, {record.before} to {record.after},"
    times = f" ({significant(record.speedup)} times as fast)" if record.speedup else ""
    supports = f"{move} {_WENT[record.outcome]}{times} in a run like this one: {', '.join(hit.why)}."
    return Precedent(
        id=record.id, title=plain(record.title, 400), outcome=record.outcome.value, supports=plain(supports, 500)
    )
