"""The knowledge base: notes that can be cited, what the user ingested, and the search over both."""

from asap.core.stores import StoreWarning
from asap.knowledge.evaluation import RetrievalScores, evaluate
from asap.knowledge.notes.ingested import Ingested, list_ingested
from asap.knowledge.notes.note_files import Note, NoteSource
from asap.knowledge.search import KnowledgeHit, get_note, ingest, list_notes, rebuild, remove, search_knowledge

__all__ = [
    "Ingested",
    "KnowledgeHit",
    "Note",
    "NoteSource",
    "RetrievalScores",
    "StoreWarning",
    "evaluate",
    "get_note",
    "ingest",
    "list_ingested",
    "list_notes",
    "rebuild",
    "remove",
    "search_knowledge",
]
