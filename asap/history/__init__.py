"""Past optimizations: records, search, and what a precedent is worth."""

from asap.history.files import Added
from asap.history.prior import agreement, precedent_prior, precedent_weight
from asap.history.query import HistoryQuery
from asap.history.reading import understood
from asap.history.record import HistoryRecord, Model, Outcome, Source
from asap.history.recording import record_from
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
    "agreement",
    "export_records",
    "get_record",
    "import_records",
    "list_records",
    "precedent_prior",
    "precedent_weight",
    "rebuild",
    "record_from",
    "search_history",
    "understood",
]
