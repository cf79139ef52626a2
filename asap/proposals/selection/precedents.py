"""Past optimizations of similar runs, and the sentence by which one supports or opposes a plan."""

from asap.core.text import plain
from asap.core.units import significant
from asap.diagnosis.diagnosis import Bottleneck
from asap.history import HistoryHit, HistoryQuery, Outcome, move_similarity, search_history
from asap.models import count_parameters
from asap.plans import Plan
from asap.study.study import Study

SIMILAR_RUNS = 50
"""Precedents that are searched for one that made the same move."""

LEAST_WEIGHT = 0.25
"""Least weight of a precedent that is cited: that of an even chance that the change made the difference, for the same
move in a run half-way between any run and the same one."""

SAME_MOVE = 0.999
"""Similarity from which two moves are the same but for rounding."""

_OUTCOMES = {
    Outcome.IMPROVED: "was faster",
    Outcome.SLOWER: "was slower",
    Outcome.OUT_OF_MEMORY: "ran out of memory",
}


def similar_runs(study: Study, limit: int) -> list[HistoryHit]:
    """Past optimizations of runs that were like this one, most similar first."""
    diagnosis, profile = study.diagnosis, study.profile
    known = diagnosis.bottleneck is not Bottleneck.INSUFFICIENT_EVIDENCE
    model = study.experiment.model
    query = HistoryQuery(
        bottleneck=diagnosis.bottleneck if known else None,
        bound=profile.roofline.program_bound if profile else None,
        chip=study.chip.name if study.chip else None,
        devices=study.slice.devices if study.slice else study.experiment.hardware.devices,
        parameters=count_parameters(model).total if model and not model.missing() else None,
        plan=study.plan,
    )
    return search_history(query, limit)


def precedent_sentence(hit: HistoryHit, before: Plan, after: Plan) -> str:
    """What a precedent says about a change of plan: its outcome, and why its run is similar."""
    record = hit.record
    same = move_similarity(record, before, after) > SAME_MOVE
    move = "The same move" if same else f"A move of a similar direction, {record.before} to {record.after},"
    times = f" ({significant(record.speedup)} times as fast)" if record.speedup else ""
    return plain(f"{move} {_OUTCOMES[record.outcome]}{times} in a run like this one: {', '.join(hit.why)}.")
