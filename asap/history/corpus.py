"""The records as a corpus that the store can index."""

from dataclasses import replace

from pydantic import ValidationError

from asap.history.files import load_records, record_files
from asap.history.record import HistoryRecord
from asap.knowledge.document import IndexedDocument, files_digest


class RecordCorpus:
    """Bundled records and the user's own."""

    name = "history"

    def fingerprint(self) -> str:
        """A digest of all record files."""
        return files_digest(record_files())

    def documents(self) -> list[IndexedDocument]:
        """All records."""
        return [document_of(record) for record in load_records()]

    def read(self, payload: str, source: str) -> IndexedDocument | None:
        """A record that another client stored."""
        try:
            document = document_of(HistoryRecord.model_validate_json(payload))
        except ValidationError:
            return None
        return replace(document, payload=payload, source=source)


def document_of(record: HistoryRecord) -> IndexedDocument:
    """A record as the index reads it."""
    facts = (record.model.name, record.hardware.name, record.hardware.chip, record.bottleneck, record.outcome.value)
    plans = (f"before {record.before}" if record.before else "", f"after {record.after}" if record.after else "")
    return IndexedDocument(
        id=record.id,
        title=record.title,
        keywords=", ".join(str(fact).replace("_", " ") for fact in facts if fact),
        body="\n".join((record.summary, *record.other_changes)),
        detail="\n".join((*plans, record.source.text)),
        payload=record.model_dump_json(by_alias=True, exclude_none=True),
    )
