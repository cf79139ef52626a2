"""Tools on what others have learned: principles from the knowledge base, precedents from the history."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from asap.agents.tools.results import Answer, answering, quoted
from asap.agents.tools.study_cache import StudyCache
from asap.agents.tools.tables import table

if TYPE_CHECKING:
    from asap.history.search import HistoryHit

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
        from asap.proposals.selection.precedents import similar_runs

        study = self._studies.study(experiment)
        asked = parse_query(HistoryQuery(text=query)) if query else None
        hits = search_history(asked, limit) if asked else similar_runs(study, limit)
        return {"records": table([_record(hit) for hit in hits])}

    @answering
    def search_knowledge(self, query: Words, limit: Limit = 3) -> Answer:
        """Search the notes on sharding and performance for the principle behind a change.

        Args:
            query: words of an engineer or of a diagnosis, such as: tensor parallelism all-reduce critical path.
            limit: how many notes, 1 to 10.
        """
        from asap.knowledge import search_knowledge

        return {
            "notes": table(
                [
                    {
                        "id": hit.note.id,
                        "title": quoted(hit.note.title, hit.note.id),
                        "text": quoted(hit.note.body, hit.note.id),
                    }
                    for hit in search_knowledge(query, limit)
                ]
            )
        }


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
