"""The knowledge base as its users see it: search, show, list, ingest, remove, rebuild."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from asap.core.errors import NotFoundError
from asap.core.text import plain
from asap.knowledge import ingestion
from asap.knowledge.index import Found
from asap.knowledge.ingestion import Ingested
from asap.knowledge.lexical import Stored
from asap.knowledge.notes import Note
from asap.knowledge.shelf import NoteShelf, bundled_notes

TEXTBOOK = "How to Scale Your Model"
"""Where two works say the same, the general one is cited before a tool's documentation."""
_OTHER_WORKS = 0.95
_SAME_SECTION = 0.8
_CLOSE = 0.5
_WORDS = 8
_SPARE = 20
"""Hits beyond the limit, from which other sections can be taken."""


@dataclass(frozen=True)
class KnowledgeHit:
    """A note that a query found. ``score`` is relative: 1 is the best that both rankings can agree on."""

    note: Note
    score: float
    why: tuple[str, ...]


def search_knowledge(query: str, limit: int = 5, *, origin: str | None = None) -> list[KnowledgeHit]:
    """The notes that speak about a question or a diagnosis, best first, from different sections where they can be.

    Args:
        query: words of an engineer or of a diagnosis.
        limit: how many.
        origin: only ``bundled`` or only ``ingested`` notes.
    """
    from asap.knowledge.store import ask

    found = ask(NoteShelf(), lambda index: index.search(query, limit + _SPARE))
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
    from asap.knowledge.store import ask

    document = ask(NoteShelf(), lambda index: index.lexical.with_id(note_id))
    if document is None:
        raise NotFoundError("there is no such note", where=plain(note_id, 80), hint="see asap knowledge list")
    return _note(document)


def list_notes() -> list[Note]:
    """All notes: bundled, ingested, and what others put on a shared server."""
    from asap.knowledge.store import shared

    return NoteShelf().notes() + [_note(document) for document in shared(NoteShelf())]


def rebuild() -> int:
    """Write the index anew; how many notes it holds."""
    from asap.knowledge.store import rebuild as rebuild_shelf

    return rebuild_shelf(NoteShelf())


def ingest(path: Path, name: str | None = None) -> Ingested:
    """Read a Markdown file or folder under a name, replacing what was there; see :mod:`asap.knowledge.ingestion`."""
    from asap.knowledge.store import synchronise

    result = ingestion.ingest(path, name)
    synchronise(NoteShelf())
    return result


def remove(name: str) -> None:
    """Forget what was ingested under a name, here and on a shared server.

    Raises:
        NotFoundError: nothing was.
        UsageError: the name cannot be one.
    """
    from asap.knowledge.store import remove_source

    there = remove_source(NoteShelf(), ingestion.checked_name(name))
    try:
        ingestion.remove(name)
    except NotFoundError:
        if not there:
            raise


def _hit(found: Found) -> KnowledgeHit:
    note = _note(found.document)
    score = found.score if note.citation.work == TEXTBOOK else found.score * _OTHER_WORKS
    why = [f"speaks of {', '.join(found.words[:_WORDS])}"] if found.words else []
    if found.similarity >= _CLOSE:
        why.append("close in meaning")
    return KnowledgeHit(note, score, tuple(why))


def _note(document: Stored) -> Note:
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
