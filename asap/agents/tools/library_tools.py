"""Tools on what others have learned: principles from the knowledge base, precedents from the history."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from asap.agents.tools.results import Answer, answering, quoted
from asap.agents.tools.study_cache import StudyCache
from asap.agents.tools.tables import table

if TYPE_CHECKING:
    from asap.history.search import HistoryHit
    from asap.knowledge.search import KnowledgeHit
    from asap.study.study import Study

Words = Annotated[str, Field(min_length=1, max_length=1000)]
Limit = Annotated[int, Field(ge=1, le=10)]


class LibraryTools:
    """Tools that search notes and past optimizations."""

    def __init__(self, studies: StudyCache):
        self._studies = studies

    @answering
    def search_history(self, experiment: str, query: Words | None = None, limit: Limit = 4) -> Answer:
        """Search past optimizations, successful or not: for runs like this one, or by a question of your own.

        Args:
            experiment: ID of the experiment.
            query: what to look for instead of similar runs, such as: context parallelism out of memory on v5e.
            limit: how many records, 1 to 10.
        """
        from asap.history import HistoryQuery, parse_query, search_history

        study = self._studies.study(experiment)
        if not query:
            return records_like(study, limit)
        return {"records": table(list(map(_record, search_history(parse_query(HistoryQuery(text=query)), limit))))}

    @answering
    def search_knowledge(self, query: Words, limit: Limit = 3) -> Answer:
        """Search the notes on sharding and performance for the principle behind a change.

        Args:
            query: words of an engineer or of a diagnosis, such as: tensor parallelism all-reduce critical path.
            limit: how many notes, 1 to 10.
        """
        return notes_on(query, limit)


def records_like(study: "Study", limit: int) -> Answer:
    """Records of past optimizations of runs like this one."""
    from asap.proposals.selection.precedents import similar_runs

    return {"records": table(list(map(_record, similar_runs(study, limit))))}


def notes_on(words: str, limit: int) -> Answer:
    """Notes on a subject."""
    from asap.knowledge import search_knowledge

    return {"notes": table(list(map(_note, search_knowledge(words, limit))))}


def _note(hit: "KnowledgeHit") -> Answer:
    note = hit.note
    return {"id": note.id, "title": quoted(note.title, note.id), "text": quoted(note.body, note.id)}


def _record(hit: "HistoryHit") -> Answer:
    record = hit.record
    return {
        "id": record.id,
        "summary": quoted(record.summary, record.id),
        "outcome": record.outcome.value,
        "speedup": record.speedup,
        "before": str(record.before) if record.before else None,
        "after": str(record.after) if record.after else None,
        "similarity": round(hit.similarity, 2),
        "why": "; ".join(hit.why),
    }
