"""The public functions of the knowledge base: search, show, list, ingest, remove, rebuild."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from asap.core.errors import NotFoundError
from asap.core.text import plain
from asap.knowledge.index.hybrid import ScoredDocument
from asap.knowledge.index.lexical import StoredDocument
from asap.knowledge.notes import ingested
from asap.knowledge.notes.corpus import NoteCorpus, bundled_notes
from asap.knowledge.notes.ingested import Ingested
from asap.knowledge.notes.note_files import Note

TEXTBOOK = "How to Scale Your Model"
"""The general text, preferred to the documentation of a tool that says the same."""
_OTHER_WORKS = 0.95  # of its score keeps what is not of the textbook; judgement: the order of notes
_SAME_SECTION = 0.8  # of its score keeps each further note of a section; judgement: the order of notes
_CLOSE = 0.5  # cosine from which likeness is given as a reason; judgement: what is printed
_WORDS = 8  # words given as a reason; judgement: what is printed
_SPARE = 20
"""Hits beyond the limit, from which other sections can be taken. Judgement: the order of notes."""


@dataclass(frozen=True)
class KnowledgeHit:
    """A note that a query found. ``score`` is relative: 1 is the best that both rankings can agree on."""

    note: Note
    score: float
    why: tuple[str, ...]


def search_knowledge(query: str, limit: int = 5, *, origin: str | None = None) -> list[KnowledgeHit]:
    """The notes that are relevant to a question or a diagnosis, best first, preferring different sections.

    Args:
        query: words of an engineer or of a diagnosis.
        limit: how many.
        origin: only ``bundled`` or only ``ingested`` notes.
    """
    from asap.knowledge.store.access import query_index

    found = query_index(NoteCorpus(), lambda index: index.search(query, limit + _SPARE))
    hits = [_hit(one) for one in found]
    return _diverse([hit for hit in hits if origin in (None, hit.note.origin)], limit)


def get_note(note_id: str) -> Note:
    """The note of that ID.

    Raises:
        NotFoundError: there is none.
    """
    for note in bundled_notes():
        if note.id == note_id:
            return note
    from asap.knowledge.store.access import query_index

    document = query_index(NoteCorpus(), lambda index: index.lexical.by_id(note_id))
    if document is None:
        raise NotFoundError("there is no such note", where=plain(note_id, 80), hint="see `asap knowledge list`")
    return _note(document)


def list_notes() -> list[Note]:
    """All notes: bundled, ingested, and what others put on a shared server."""
    from asap.knowledge.store.access import shared_documents

    return NoteCorpus().notes() + [_note(document) for document in shared_documents(NoteCorpus())]


def rebuild() -> int:
    """Rebuild the index; returns the number of notes."""
    from asap.knowledge.store.access import rebuild as rebuild_corpus

    return rebuild_corpus(NoteCorpus())


def ingest(path: Path, name: str | None = None) -> Ingested:
    """Read a Markdown file or folder under a name, replacing what was there."""
    from asap.knowledge.store.access import synchronise

    result = ingested.ingest(path, name)
    synchronise(NoteCorpus())
    return result


def remove(name: str) -> None:
    """Remove what was ingested under a name, here and on a shared server.

    Raises:
        NotFoundError: nothing was.
        UsageError: the name cannot be one.
    """
    from asap.knowledge.store.access import remove_source

    there = remove_source(NoteCorpus(), ingested.checked_name(name))
    try:
        ingested.remove(name)
    except NotFoundError:
        if not there:
            raise


def _hit(found: ScoredDocument) -> KnowledgeHit:
    note = _note(found.document)
    score = found.score if note.citation.work == TEXTBOOK else found.score * _OTHER_WORKS
    why = [f"speaks of {', '.join(found.words[:_WORDS])}"] if found.words else []
    if found.similarity >= _CLOSE:
        why.append("close in meaning")
    return KnowledgeHit(note, score, tuple(why))


def _note(document: StoredDocument) -> Note:
    note = Note.model_validate_json(document.payload)
    return note.model_copy(update={"origin": "ingested"}) if document.shared else note


def _diverse(hits: list[KnowledgeHit], limit: int) -> list[KnowledgeHit]:
    """The best, where each further note of a section counts less than the one before."""
    left = sorted(hits, key=lambda hit: -hit.score)
    chosen: list[KnowledgeHit] = []
    seen: Counter[str] = Counter()
    while left and len(chosen) < limit:
        best = max(left, key=lambda hit: hit.score * _SAME_SECTION ** seen[hit.note.citation.place])
        left.remove(best)
        chosen.append(best)
        seen[best.note.citation.place] += 1
    return chosen
