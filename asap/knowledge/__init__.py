"""The knowledge base: notes that can be cited, what the user ingested, and the search over both."""

from asap.knowledge.evaluation import Scores, evaluate
from asap.knowledge.ingestion import Ingested, list_ingested
from asap.knowledge.notes import Citation, Note
from asap.knowledge.place import StoreWarning
from asap.knowledge.search import KnowledgeHit, get_note, ingest, list_notes, rebuild, remove, search_knowledge

__all__ = [
    "Citation",
    "Ingested",
    "KnowledgeHit",
    "Note",
    "Scores",
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
