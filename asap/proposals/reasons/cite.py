"""The sources of a plan: a principle for each of its changes, and the nearest precedent of the same move."""

from functools import cache

from asap.core.text import plain
from asap.history import precedent_prior
from asap.knowledge import Note
from asap.knowledge.notes.corpus import bundled_notes
from asap.plans import Plan
from asap.proposals.proposal import Citation
from asap.proposals.selection.precedents import LEAST_WEIGHT, SIMILAR_RUNS, precedent_sentence, similar_runs
from asap.proposals.selection.strategy import changes
from asap.study.study import Study


def cite(study: Study, plan: Plan) -> tuple[Citation, ...]:
    """A precedent for or against a plan if one is similar enough, and a principle for each of its changes."""
    return (*_precedent(study, plan), *_principles(study, plan))


def _principles(study: Study, plan: Plan) -> tuple[Citation, ...]:
    found: dict[str, Citation] = {}
    for change in changes(plan, study.plan, experts_over=study.experiment.workload.experts_over):
        note = _notes()[change.principle.note]
        supports = f"{change}: {change.principle.claimed}."
        citation = Citation(kind="principle", id=note.id, title=note.title, url=note.citation.url, supports=supports)
        found.setdefault(note.id, citation)
    return tuple(found.values())


@cache
def _notes() -> dict[str, Note]:
    """The bundled notes by ID, read once."""
    return {note.id: note for note in bundled_notes()}


def _precedent(study: Study, plan: Plan) -> tuple[Citation, ...]:
    current = study.plan
    if current is None:
        return ()
    weighed = [(precedent_prior(hit, current, plan), hit) for hit in similar_runs(study, SIMILAR_RUNS)]
    weight, hit = max(weighed, key=lambda pair: abs(pair[0]), default=(0.0, None))
    if hit is None or abs(weight) < LEAST_WEIGHT:
        return ()
    record = hit.record
    supports = f"{precedent_sentence(hit, current, plan)} It counts in the order with a weight of {weight:.2f}."
    title = plain(record.title)
    return (
        Citation(
            kind="precedent", id=record.id, title=title, url=record.source.url, supports=supports, against=weight < 0
        ),
    )
