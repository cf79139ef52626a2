"""The public functions of the history: search, show, list, add, import, export."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from asap.core.errors import NotFoundError
from asap.core.files import write_atomically
from asap.core.text import plain
from asap.history.changes import mesh_of
from asap.history.files import Added, RecordCorpus, add_records, line_of, load_records, read_records
from asap.history.query import HistoryQuery
from asap.history.record import HistoryRecord, size_class

if TYPE_CHECKING:
    from asap.history.similarity import FeatureTable
    from asap.knowledge.index.hybrid import Index
    from asap.knowledge.index.lexical import StoredDocument

_REASON_THRESHOLDS = {"chip": 0.3, "text": 0.5}
_REASON_THRESHOLD = 0.75
"""Likeness from which a feature is given as a reason. Chips and texts rarely come close to 1."""
_TEXT_POOL = 50


@dataclass(frozen=True)
class HistoryHit:
    """A record, how similar its run is to the one asked about (0 to 1; 0.5 says nothing), and in what."""

    record: HistoryRecord
    similarity: float
    why: tuple[str, ...]


_tables: dict[str, "FeatureTable"] = {}


def search_history(query: HistoryQuery, limit: int = 5) -> list[HistoryHit]:
    """The records whose runs were most like this one, most similar first."""
    from asap.history.similarity import similarity
    from asap.knowledge.store.access import query_index

    def both(index: "Index") -> tuple["FeatureTable", dict[str, float]]:
        found = index.search(query.text, _TEXT_POOL) if query.text.strip() else []
        return _table(index), {one.document.id: max(one.similarity, 0.0) for one in found}

    table, texts = query_index(RecordCorpus(), both)
    text = table.column(texts) if query.text.strip() else None
    features = table.compare(query, text)
    scores = similarity(features)
    order = (-scores).argsort(kind="stable")[:limit]
    return [
        HistoryHit(
            table.records[row],
            float(scores[row]),
            _reasons(table.records[row], query, {name: float(values[row]) for name, values in features.items()}),
        )
        for row in order
    ]


def get_record(record_id: str) -> HistoryRecord:
    """The record of that ID.

    Raises:
        NotFoundError: there is none.
    """
    for record in list_records():
        if record.id == record_id:
            return record
    raise NotFoundError("there is no such record", where=plain(record_id, 80), hint="see `asap history list`")


def list_records() -> list[HistoryRecord]:
    """All records: bundled, the user's own, and what others put on a shared server."""
    from asap.knowledge.store.access import shared_documents

    return load_records() + [_record(document) for document in shared_documents(RecordCorpus())]


def add(*records: HistoryRecord) -> Added:
    """Add records to the user's own; the same facts are added once. All or none."""
    result = add_records(records)
    _sync_server(result)
    return result


def import_records(path: Path) -> Added:
    """Add all records of a JSONL file, or none.

    Raises:
        NotFoundError: there is no such file.
        BadInputError: a line is not a record, with file and line; or an ID is taken.
    """
    return add(*(record for _, record in read_records(path)))


def export_records(path: Path, records: Iterable[HistoryRecord] | None = None) -> int:
    """Write records (all, if none are given) as JSONL; how many."""
    lines = [line_of(record) for record in (list_records() if records is None else records)]
    write_atomically(path, "".join(f"{line}\n" for line in lines))
    return len(lines)


def rebuild() -> int:
    """Rebuild the index; returns the number of records."""
    from asap.knowledge.store.access import rebuild as rebuild_corpus

    return rebuild_corpus(RecordCorpus())


def _sync_server(result: Added) -> None:
    from asap.knowledge.store.access import synchronise

    if result.added:
        synchronise(RecordCorpus())


def _table(index: "Index") -> "FeatureTable":
    from asap.history.similarity import FeatureTable

    if index.stamp not in _tables:
        _tables.clear()
        _tables[index.stamp] = FeatureTable.of([_record(document) for document in index.lexical.everything()])
    return _tables[index.stamp]


def _record(document: "StoredDocument") -> HistoryRecord:
    record = HistoryRecord.model_validate_json(document.payload)
    return record.model_copy(update={"origin": "shared"}) if document.shared else record


def _reasons(record: HistoryRecord, query: HistoryQuery, likeness: dict[str, float]) -> tuple[str, ...]:
    chip = record.hardware.chip or record.hardware.name
    before = mesh_of(record.before) if record.before else "unknown"
    same_size = size_class(query.parameters) == record.model.size_class
    texts = {
        "bottleneck": f"same bottleneck: {str(record.bottleneck or '').replace('_', ' ')}",
        "chip": f"{'same' if likeness['chip'] == 1 else 'similar'} chip: {chip}",
        "plan": f"{'same' if likeness['plan'] == 1 else 'similar'} mesh before the change: {before}",
        "size": f"{'same size class' if same_size else 'similar size'}: {record.model.size_class}",
        "scale": f"{'same' if likeness['scale'] == 1 else 'similar'} scale: {record.devices} devices",
        "bound": f"bound by the same: {record.bound}",
        "text": "its description is close to the question",
    }
    return tuple(
        text for name, text in texts.items() if likeness[name] >= _REASON_THRESHOLDS.get(name, _REASON_THRESHOLD)
    )
