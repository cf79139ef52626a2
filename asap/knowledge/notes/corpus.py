"""The notes as a corpus: those that come with ASAP, and what the user ingested."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from asap.core.files import data_folder
from asap.knowledge.document import IndexedDocument, files_digest
from asap.knowledge.notes.ingested import chunk_files, usable_chunks
from asap.knowledge.notes.note_files import Note, load_notes


class NoteCorpus:
    """Notes of :func:`~asap.core.files.data_folder` and chunks of ``$ASAP_HOME/knowledge``."""

    name = "knowledge"

    def fingerprint(self) -> str:
        """A digest of all note and chunk files."""
        return files_digest([*note_files(), *chunk_files()])

    def documents(self) -> list[IndexedDocument]:
        """All notes and chunks."""
        return [document_of(note) for note in self.notes()]

    def notes(self) -> list[Note]:
        """All notes, then all chunks."""
        return [*bundled_notes(), *usable_chunks()]

    def read(self, payload: str, source: str) -> IndexedDocument | None:
        """A note that another client stored."""
        try:
            document = document_of(Note.model_validate_json(payload))
        except ValidationError:
            return None
        return replace(document, payload=payload, source=source)


def bundled_notes() -> list[Note]:
    """The notes that come with ASAP.

    Raises:
        BadInputError: one is malformed, with file and line.
    """
    return load_notes(data_folder("knowledge"))


def note_files() -> list[Path]:
    """The files of the bundled notes."""
    return sorted(data_folder("knowledge").glob("*.md"))


def document_of(note: Note) -> IndexedDocument:
    """A note as the index reads it: title, keywords and section weigh more than limits and numbers."""
    detail: Iterable[str | None] = (note.applies, note.limits, note.equation, note.worked_number)
    return IndexedDocument(
        id=note.id,
        title=note.title,
        keywords=", ".join((*note.keywords, note.citation.section)),
        body=note.body,
        detail="\n".join(filter(None, detail)),
        payload=note.model_dump_json(exclude_none=True),
        source=note.citation.work if note.origin == "ingested" else "",
    )
