"""One record of the worklog: a line of JSON sealed by a checksum that continues the record before.

The checksum is the SHA-256 of the previous checksum and of the line's own bytes, so altering, removing or
reordering a record breaks the chain from there on. Removing the newest records leaves a valid, shorter chain:
whoever must exclude that keeps the head checksum elsewhere.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

GENESIS = "0" * 64
INTERRUPTED = "interrupted"
"""The event of the note that a Ctrl-C leaves."""
_SEALED = re.compile(rb'(\{.*),"checksum":"([0-9a-f]{64})"\}', re.DOTALL)


class Kind(StrEnum):
    """What a record reports."""

    USER_INPUT = "user_input"
    MODEL_REQUEST = "model_request"
    MODEL_RESPONSE = "model_response"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    RESULT = "result"
    ERROR = "error"
    NOTE = "note"


@dataclass(frozen=True)
class Record:
    """A step that is on disk."""

    sequence: int
    time: datetime
    kind: Kind
    payload: Any
    checksum: str

    @property
    def fields(self) -> dict[str, Any]:
        """The payload's fields; none where it is no mapping."""
        return self.payload if isinstance(self.payload, dict) else {}


@dataclass(frozen=True)
class Scan:
    """What a part of a worklog holds: whole records, then perhaps a torn tail or a bad record."""

    records: tuple[Record, ...]
    good_bytes: int
    torn_bytes: int
    reason: str | None


def seal(sequence: int, time: datetime, kind: Kind, payload: Any, previous: str) -> tuple[Record, bytes]:
    """Make the record that follows ``previous`` and its line; ``payload`` is plain JSON."""
    body = {"sequence": sequence, "time": time.isoformat(), "kind": kind.value, "payload": payload}
    unsealed = json.dumps(body, allow_nan=False, separators=(",", ":")).encode()[:-1]
    checksum = _checksum(previous, unsealed)
    line = unsealed + f',"checksum":"{checksum}"}}\n'.encode()
    return Record(sequence, time, kind, payload, checksum), line


def scan(data: bytes, sequence: int = 0, previous: str = GENESIS) -> Scan:
    """Read records until the end, a torn tail or the first bad record; never raises on what the bytes are."""
    records: list[Record] = []
    good = 0
    for line in _whole_lines(data):
        try:
            record = _unseal(line, sequence + len(records), previous)
        except ValueError as damage:
            return Scan(tuple(records), good, 0, str(damage))
        records.append(record)
        previous = record.checksum
        good += len(line) + 1
    return Scan(tuple(records), good, len(data) - good, None)


def _whole_lines(data: bytes) -> Iterator[bytes]:
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        yield data[start:end]
        start = end + 1


def _unseal(line: bytes, sequence: int, previous: str) -> Record:
    sealed = _SEALED.fullmatch(line)
    if sealed is None:
        raise ValueError(f"record {sequence} is not a sealed record: it was altered")
    try:
        fields = json.loads(line)
        found = fields["sequence"]
        record = Record(
            found, datetime.fromisoformat(fields["time"]), Kind(fields["kind"]), fields["payload"], fields["checksum"]
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"record {sequence} cannot be read: it was altered") from error
    if found != sequence:
        raise ValueError(f"record {found} stands where record {sequence} belongs: removed or reordered")
    if _checksum(previous, sealed.group(1)) != record.checksum:
        raise ValueError(f"the checksum of record {sequence} does not match: it or the record before was altered")
    return record


def _checksum(previous: str, unsealed: bytes) -> str:
    return hashlib.sha256(previous.encode() + unsealed).hexdigest()
