"""Past optimizations: records, search, and what a precedent is worth."""

from asap.history.files import Added
from asap.history.from_experiments import record_from_experiments
from asap.history.precedent_weight import move_similarity, precedent_prior, precedent_weight
from asap.history.query import HistoryQuery, parse_query
from asap.history.record import HistoryRecord, Model, Outcome, Source
from asap.history.search import (
    HistoryHit,
    add,
    export_records,
    get_record,
    import_records,
    list_records,
    rebuild,
    search_history,
)

__all__ = [
    "Added",
    "HistoryHit",
    "HistoryQuery",
    "HistoryRecord",
    "Model",
    "Outcome",
    "Source",
    "add",
    "export_records",
    "get_record",
    "import_records",
    "list_records",
    "move_similarity",
    "parse_query",
    "precedent_prior",
    "precedent_weight",
    "rebuild",
    "record_from_experiments",
    "search_history",
]
