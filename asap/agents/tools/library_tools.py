"""Tools on what others have learned: principles from the knowledge base, precedents from the history."""

from typing import Annotated

from pydantic import Field

from asap.agents.tools.results import Answer, answering, quoted
from asap.agents.tools.study_cache import StudyCache

Query = Annotated[str, Field(min_length=1, max_length=1000)]
Limit = Annotated[int, Field(ge=1, le=10)]


class LibraryTools:
    """Tools that search notes and past optimizations."""

    def __init__(self, studies: StudyCache):
        self._studies = studies

    @answering
    def search_history(self, experiment: str, limit: Limit = 5) -> Answer:
        """Search past optimizations, successful or not, for runs like this one.

        Args:
            experiment: ID of the experiment.
            limit: how many records, 1 to 10.
        """
        from asap.proposals.precedents import similar_runs

        return {
            "records": [
                {
                    "id": hit.record.id,
                    "title": quoted(hit.record.title, hit.record.id),
                    "summary": quoted(hit.record.summary, hit.record.id),
                    "outcome": hit.record.outcome,
                    "speedup": hit.record.speedup,
                    "before": str(hit.record.before) if hit.record.before else None,
                    "after": str(hit.record.after) if hit.record.after else None,
                    "similarity": hit.similarity,
                    "why": hit.why,
                    "confidence": hit.record.confidence,
                }
                for hit in similar_runs(self._studies.study(experiment), limit)
            ]
        }

    @answering
    def search_knowledge(self, query: Query, limit: Limit = 5) -> Answer:
        """Search the notes on sharding and performance for the principle behind a change.

        Args:
            query: words of an engineer or of a diagnosis, such as: tensor parallelism all-reduce critical path.
            limit: how many notes, 1 to 10.
        """
        from asap.knowledge import search_knowledge

        return {
            "notes": [
                {
                    "id": hit.note.id,
                    "title": quoted(hit.note.title, hit.note.id),
                    "text": quoted(hit.note.body, hit.note.id),
                    "url": hit.note.citation.url,
                    "score": hit.score,
                }
                for hit in search_knowledge(query, limit)
            ]
        }
