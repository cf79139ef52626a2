"""What stands behind a plan: the principle of each of its changes, and the nearest precedent of the same move."""

from functools import lru_cache

from asap.core.text import plain
from asap.core.units import significant
from asap.diagnosis.diagnosis import Bottleneck
from asap.diagnosis.study import Study
from asap.history import HistoryHit, HistoryQuery, Outcome, agreement, precedent_prior, search_history
from asap.knowledge import Note, search_knowledge
from asap.knowledge.shelf import NoteShelf
from asap.models import count_parameters
from asap.plans import Plan
from asap.proposals.proposal import Citation
from asap.proposals.strategy import changes

SIMILAR_RUNS = 50
"""Precedents that are looked at for one that made the same move."""

WORTH_TELLING = 0.25
"""Least weight of a precedent that is cited: that of an even chance that the change made the difference, for the same
move in a run half-way between any run and the same one."""

EXACTLY = 0.999
"""Agreement from which two moves are the same but for rounding."""

_WENT = {
    Outcome.IMPROVED: "was faster",
    Outcome.SLOWER: "was slower",
    Outcome.OUT_OF_MEMORY: "ran out of memory",
}


def cite(study: Study, plan: Plan) -> tuple[Citation, ...]:
    """A precedent for or against a plan if one is similar enough, and a principle for each of its changes."""
    return (*_precedent(study, plan), *_principles(study, plan))


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


def _principles(study: Study, plan: Plan) -> tuple[Citation, ...]:
    found: dict[str, Citation] = {}
    for change in changes(plan, study.plan or Plan()):
        principle = change.principle
        for note in _notes(principle.query, NoteShelf().fingerprint()):
            supports = f"{change}: {principle.claimed}."
            citation = Citation(
                kind="principle", id=note.id, title=note.title, url=note.citation.url, supports=supports
            )
            found.setdefault(note.id, citation)
    return tuple(found.values())


@lru_cache(maxsize=64)
def _notes(query: str, state: str) -> tuple[Note, ...]:
    """The note that a principle cites, looked up once for each state of the notes: the principles are few."""
    del state
    return tuple(hit.note for hit in search_knowledge(query, 1))


def _precedent(study: Study, plan: Plan) -> tuple[Citation, ...]:
    current = study.plan
    if current is None:
        return ()
    weighed = [(precedent_prior(hit, current, plan), hit) for hit in similar_runs(study, SIMILAR_RUNS)]
    weight, hit = max(weighed, key=lambda pair: abs(pair[0]), default=(0.0, None))
    if hit is None or abs(weight) < WORTH_TELLING:
        return ()
    record = hit.record
    times = f" ({significant(record.speedup)} times as fast)" if record.speedup else ""
    same = agreement(record, current, plan) > EXACTLY
    move = "The same move" if same else f"A move of a similar direction, {record.before} to {record.after},"
    supports = f"{move} {_WENT[record.outcome]}{times} in a run like this one: {', '.join(hit.why)}."
    return (
        Citation(
            kind="precedent", id=record.id, title=plain(record.title), url=record.source.url, supports=plain(supports)
        ),
    )
