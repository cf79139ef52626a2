"""The worklog of a session: append-only, on disk before a step counts, shared by several processes."""

import os
import re
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock

from asap.core.errors import AsapError, BadInputError, UsageError
from asap.core.files import home, private_folder, unwritable
from asap.sharding_memory.payload import plain_payload
from asap.sharding_memory.record import GENESIS, Kind, Record, scan, seal

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LOCK_TIMEOUT_S = 30.0


def new_session_name() -> str:
    """A fresh name that sorts by time: ``20260822-101530-1f3a9c``."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:6]}"


def is_session_name(name: str) -> bool:
    """Whether ``name`` may become a file name."""
    return _NAME.fullmatch(name) is not None


def session_path(session: str, folder: Path | None = None) -> Path:
    """Where a session's worklog lies.

    Raises:
        UsageError: the name could not be a file name.
    """
    if not is_session_name(session):
        message = "a session's name has letters, digits, '.', '_' and '-', and starts with a letter or digit"
        raise UsageError(message, where=repr(session))
    return (folder or home() / "sessions") / f"{session}.jsonl"


def session_lock(path: Path) -> FileLock:
    """The lock that every writer and checker of a worklog holds."""
    return FileLock(path.with_suffix(".lock"), timeout=_LOCK_TIMEOUT_S, mode=0o600)


class Worklog:
    """Appends records to one session. It never breaks a run: after a failure ``append`` does nothing.

    Args:
        session: its name; see :func:`new_session_name`.
        folder: of all sessions; ``home()/sessions`` by default.
    """

    def __init__(self, session: str, folder: Path | None = None):
        self.session = session
        self.path = session_path(session, folder)
        self._lock = session_lock(self.path)
        self._failed: AsapError | None = None
        self._end = 0
        self._next = 0
        self._head = GENESIS

    @property
    def failed(self) -> AsapError | None:
        """The first failure, which is to be reported once; ``None`` while every step is on disk."""
        return self._failed

    def append(self, kind: Kind, payload: Any) -> Record | None:
        """Write a record and wait until it is on disk; ``None`` if the worklog has failed."""
        if self._failed is not None:
            return None
        try:
            plain = plain_payload(payload)
            private_folder(self.path.parent)
            with self._lock:
                return self._append(kind, plain)
        except BadInputError as damage:
            self._failed = damage
        except (OSError, NotImplementedError) as error:
            cause = error if isinstance(error, OSError) else OSError(str(error))
            self._failed = unwritable(self.path.parent, cause)
        return None

    def _append(self, kind: Kind, payload: Any) -> Record:
        is_new = not self.path.exists()
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            torn = self._catch_up(descriptor)
            if torn:
                os.ftruncate(descriptor, self._end)
                self._write(descriptor, Kind.NOTE, {"event": "recovered", "bytes_cut": torn})
            record = self._write(descriptor, kind, payload)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if is_new:
            _sync_folder(self.path.parent)
        return record

    def _catch_up(self, descriptor: int) -> int:
        """Read what other processes wrote since; returns the length of a torn tail in bytes."""
        size = os.fstat(descriptor).st_size
        if size < self._end:
            raise BadInputError("records were removed while the session was running", where=str(self.path))
        found = scan(_read(descriptor, self._end, size - self._end), self._next, self._head)
        self._advance(found.records, found.good_bytes)
        if found.reason is not None:
            hint = f"see `asap sessions verify {self.session}`; start a new session"
            raise BadInputError(f"the worklog is damaged: {found.reason}", where=str(self.path), hint=hint)
        return found.torn_bytes

    def _write(self, descriptor: int, kind: Kind, payload: Any) -> Record:
        record, line = seal(self._next, datetime.now(UTC), kind, payload, self._head)
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        self._advance((record,), len(line))
        return record

    def _advance(self, records: tuple[Record, ...], size: int) -> None:
        if records:
            self._head = records[-1].checksum
        self._next += len(records)
        self._end += size


def _read(descriptor: int, start: int, size: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as stream:
        stream.seek(start)
        return stream.read(size)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
