"""Record files: bundled in ``history_db``, the user's in ``$ASAP_HOME/history``; one JSON object per line."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from asap.core.errors import BadInputError, NotFoundError
from asap.core.files import data_folder, home, read_json_lines, write_atomically
from asap.core.locking import locked
from asap.core.secrets import redacted
from asap.core.stores import REPAIR, warn_of_store
from asap.core.text import plain
from asap.history.record import HistoryRecord
from asap.knowledge.document import IndexedDocument, digest, files_digest

_NOT_FACTS = {"id", "title", "summary", "source", "confidence", "profile_links", "origin", "schema_"}


@dataclass(frozen=True)
class Added:
    """IDs of the records that were added, and of those whose facts were on record already."""

    added: tuple[str, ...]
    known: tuple[str, ...]


def record_files() -> list[Path]:
    """All files that may hold records, the bundled ones first."""
    return [*sorted(data_folder("history_db").glob("*.jsonl")), own_file()]


def load_records() -> list[HistoryRecord]:
    """All records, the bundled ones first; of the user's, what cannot be read is left out with a warning."""
    records, damage = _loaded()
    if damage is not None:
        warn_of_store(f"precedents are left out: {damage} ({REPAIR})")
    return records


def damaged_records() -> BadInputError | None:
    """What is wrong with the first of the user's lines that is no record, with file and line."""
    return _loaded()[1]


def _loaded() -> tuple[list[HistoryRecord], BadInputError | None]:
    records: list[HistoryRecord] = []
    places: dict[str, str] = {}
    for path in sorted(data_folder("history_db").glob("*.jsonl")):
        for place, record in read_records(path):
            places[record.id] = place
            records.append(record.model_copy(update={"origin": "bundled"}))
    first: BadInputError | None = None
    try:
        lines = list(read_json_lines(own_file()))
    except NotFoundError:
        lines = []
    except BadInputError as error:
        lines, first = [], error
    for place, line in lines:
        try:
            record = parse_record(line, place)
            if record.id in places:
                raise BadInputError(f"the ID {record.id} is taken by {places[record.id]}", where=place)
        except BadInputError as error:
            first = first or error
            continue
        places[record.id] = place
        records.append(record.model_copy(update={"origin": "user"}))
    return records, first


def read_records(path: Path) -> Iterator[tuple[str, HistoryRecord]]:
    """The records of a file, each with its place, ``file:line``.

    Raises:
        NotFoundError: there is no such file.
        BadInputError: a line is not a record, with file and line.
    """
    for place, line in read_json_lines(path):
        yield place, parse_record(line, place)


def parse_record(text: str, place: str) -> HistoryRecord:
    """A record from JSON.

    Raises:
        BadInputError: it is none; says which field is wrong.
    """
    try:
        return HistoryRecord.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        reason = plain(f"{field}: {first['msg']}" if field else first["msg"], 200)
        raise BadInputError(f"is not a record: {reason}", where=place) from error


def add_records(records: Iterable[HistoryRecord]) -> Added:
    """Add all records, or none if one cannot be added. The same facts are added once.

    Raises:
        BadInputError: an ID is taken by other facts, or a line of the user's file is no record: writing would lose it.
        ServiceError: another process is writing for too long.
    """
    with locked(own_file().parent, "the history"):
        present, damage = _loaded()
        if damage is not None:
            raise damage
        by_facts = {facts(record): record.id for record in present}
        ids = {record.id for record in present}
        own = [record for record in present if record.origin == "user"]
        added: list[str] = []
        known: list[str] = []
        for record in map(_strip_secrets, records):
            if same := by_facts.get(facts(record)):
                known.append(same)
                continue
            if record.id in ids:
                raise BadInputError("the ID is taken by a record with other facts", where=record.id)
            by_facts[facts(record)] = record.id
            ids.add(record.id)
            own.append(record)
            added.append(record.id)
        if added:
            write_own(own)
    return Added(tuple(added), tuple(known))


def write_own(records: Iterable[HistoryRecord]) -> None:
    """Replace the user's records; raises like :func:`asap.core.files.write_atomically`."""
    write_atomically(own_file(), "".join(f"{line_of(record)}\n" for record in records))


def line_of(record: HistoryRecord) -> str:
    """A record as one line of JSON, without unknown and default values."""
    fields = record.model_dump(mode="json", exclude={"origin"}, exclude_defaults=True, exclude_none=True)
    return json.dumps({"schema": record.schema_, **fields}, ensure_ascii=False)


def facts(record: HistoryRecord) -> str:
    """A digest of what happened, without title, summary and source."""
    return digest(record.model_dump_json(exclude=_NOT_FACTS, exclude_none=True))


def own_file() -> Path:
    """Where the user's records lie."""
    return home() / "history" / "records.jsonl"


def _strip_secrets(record: HistoryRecord) -> HistoryRecord:
    update = {
        "title": redacted(record.title),
        "summary": redacted(record.summary),
        "other_changes": tuple(map(redacted, record.other_changes)),
        "profile_links": tuple(map(redacted, record.profile_links)),
        "origin": "user",
    }
    return record.model_copy(update=update)


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
