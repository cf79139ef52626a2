"""Sharding Memory: the append-only worklog of every message, tool call and result."""

from asap.sharding_memory.record import INTERRUPTED, Kind, Record
from asap.sharding_memory.sessions import (
    Verdict,
    export_session,
    read_session,
    readable,
    readable_sessions,
    sessions,
    verify_session,
)
from asap.sharding_memory.worklog import Worklog, new_session_name

__all__ = [
    "INTERRUPTED",
    "Kind",
    "Record",
    "Verdict",
    "Worklog",
    "export_session",
    "new_session_name",
    "read_session",
    "readable",
    "readable_sessions",
    "sessions",
    "verify_session",
]
