"""Queries on what others have learned: precedents, notes, the meaning of a word."""

import tomllib
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from asap.answers.figure import CHANGE, Answer, Figure, Part, Query, bare
from asap.answers.inquiry import Inquiry
from asap.core.errors import NotFoundError
from asap.core.units import Provenance
from asap.history import HistoryHit

Words = Annotated[str, Field(min_length=1, max_length=1000)]
Limit = Annotated[int, Field(ge=1, le=10)]


class PrecedentRow(Part):
    """A past optimization."""

    id: str
    title: str
    outcome: str
    effect: Figure | None = Field(description="what became of the time, as it was measured")
    before: str | None
    after: str | None
    similarity: float = Field(description="of its run to this one, 0 to 1")
    why: str = Field(description="in what its run is similar")
    source: str | None
    summary: str


class PrecedentsAnswer(Answer):
    """Past optimizations, successful or not."""

    precedents: tuple[PrecedentRow, ...]


class Precedents(Query):
    """Search past optimizations, successful or not: of runs like this one, or by words such as: context parallelism out
    of memory on v5e."""

    words: Annotated[str, Field(max_length=1000)] | None = None
    limit: Limit = 4

    def answer(self, inquiry: Inquiry) -> PrecedentsAnswer:
        """The most similar first."""
        from asap.history import HistoryQuery, parse_query, search_history
        from asap.proposals.selection.precedents import similar_runs

        if self.words:
            found = search_history(parse_query(HistoryQuery(text=self.words)), self.limit)
        else:
            found = similar_runs(inquiry.study, self.limit)
        return PrecedentsAnswer(precedents=tuple(map(_precedent, found)))


class NoteRow(Part):
    """A note of the knowledge base."""

    id: str
    title: str
    text: str
    source: str | None


class NotesAnswer(Answer):
    """Notes on a subject."""

    notes: tuple[NoteRow, ...]


class Notes(Query):
    """Search the notes on sharding and performance for the principle behind a change, by words such as: tensor
    parallelism all-reduce critical path."""

    words: Words
    limit: Limit = 3

    def answer(self, inquiry: Inquiry) -> NotesAnswer:
        """The most relevant first."""
        return found_notes(self.words, self.limit)


def found_notes(words: str, limit: int) -> NotesAnswer:
    """The notes that say most about some words, the most relevant first."""
    from asap.knowledge import search_knowledge

    rows = (
        NoteRow(id=hit.note.id, title=hit.note.title, text=hit.note.body, source=hit.note.citation.url)
        for hit in search_knowledge(words, limit)
    )
    return NotesAnswer(notes=tuple(rows))


class DefineAnswer(Answer):
    """The meaning of a word."""

    term: str
    means: str


class Define(Query):
    """Say what a word of the reports or of the trade means, such as: P(faster), exposed, MFU, FSDP."""

    term: Annotated[str, Field(min_length=1, max_length=80)]

    def answer(self, inquiry: Inquiry) -> DefineAnswer:
        """From the table of terms."""
        known, word = terms(), self.term.strip().lower().rstrip("?")
        name = word if word in known else word.removesuffix("s")
        if name not in known:
            close = get_close_matches(word, known, n=3, cutoff=0.6)
            hint = f"did you mean {', '.join(close)}?" if close else "`notes` searches the knowledge base"
            raise NotFoundError("is not in the table of terms", where=self.term, hint=hint)
        return DefineAnswer(term=name, means=known[name])


@cache
def terms() -> dict[str, str]:
    """Each name with what it means."""
    table = tomllib.loads(Path(__file__).with_name("terms.toml").read_text(encoding="utf-8"))
    return {name.lower(): each["means"] for each in table["term"] for name in each["names"]}


def _precedent(hit: HistoryHit) -> PrecedentRow:
    record = hit.record
    change = 1 / record.speedup - 1 if record.speedup else None
    return PrecedentRow(
        id=record.id,
        title=record.title,
        outcome=record.outcome.value.replace("_", " "),
        effect=bare(record.id, "effect", change, CHANGE, record.source.text, Provenance.PRECEDENT),
        before=str(record.before) if record.before else None,
        after=str(record.after) if record.after else None,
        similarity=round(hit.similarity, 2),
        why="; ".join(hit.why),
        source=record.source.url,
        summary=record.summary,
    )
