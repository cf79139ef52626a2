"""The records of a session in one line each, for reports."""

from collections.abc import Iterable

from asap.reports.html import LogEntry
from asap.sharding_memory.described import described
from asap.sharding_memory.record import Record


def log_entries(records: Iterable[Record]) -> list[LogEntry]:
    """What happened in each step."""
    return [LogEntry(r.sequence, r.time, r.kind.value, described(r)) for r in records]
