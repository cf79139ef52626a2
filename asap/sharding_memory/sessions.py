"""Looking at past sessions: list, read, verify, export."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from asap.core.errors import BadInputError, NotFoundError
from asap.core.files import home
from asap.core.stores import warn_of_store
from asap.sharding_memory.dialogue import dialogue
from asap.sharding_memory.record import GENESIS, Record, Scan, scan
from asap.sharding_memory.worklog import is_session_name, session_lock, session_path

EXPORT_SCHEMA = "asap.memory/1"


@dataclass(frozen=True)
class Verdict:
    """Whether a worklog is intact."""

    ok: bool
    records: int
    first_bad: int | None
    reason: str | None
    torn_bytes: int
    head: str


@contextmanager
def readable(session: str) -> Iterator[None]:
    """Around reading payloads, which may be of any form: their checksums hold, but somebody else wrote them.

    Raises:
        BadInputError: a payload is not what it should be.
    """
    try:
        yield
    except (ValidationError, LookupError, TypeError, AttributeError, ValueError) as error:
        hint = "`asap analyze EXPERIMENT` starts anew"
        raise BadInputError("holds records that ASAP does not write", where=session, hint=hint) from error


def sessions(folder: Path | None = None) -> tuple[str, ...]:
    """Names of all sessions, the most recent last."""
    files = [path for path in (folder or home() / "sessions").glob("*.jsonl") if is_session_name(path.stem)]
    return tuple(path.stem for path in sorted(files, key=lambda path: (_changed(path), path.name)))


def readable_sessions() -> Iterator[tuple[str, tuple[Record, ...]]]:
    """All sessions with their records, the most recent first; one that cannot be read is left out, with a warning."""
    for name in reversed(sessions()):
        try:
            yield name, read_session(name)
        except (BadInputError, NotFoundError) as error:
            warn_of_store(f"a session is left out: {error}")


def read_session(session: str, folder: Path | None = None) -> tuple[Record, ...]:
    """The records up to the first that is torn or bad.

    Raises:
        NotFoundError: there is no such session.
        BadInputError: its file cannot be read.
    """
    return _scan(session, folder).records


def verify_session(session: str, folder: Path | None = None) -> Verdict:
    """Check sequence and checksums from the first record on; raises like :func:`read_session`.

    A worklog comes into being with its first record: an empty one was emptied.
    """
    return _verdict(_scan(session, folder))


def export_session(session: str, form: Literal["markdown", "json"], folder: Path | None = None) -> str:
    """The session as a dialogue in Markdown, or every record in JSON; raises like :func:`read_session`."""
    found = _scan(session, folder)
    records, verdict = found.records, _verdict(found)
    if form == "json":
        entries = [{**asdict(record), "time": record.time.isoformat()} for record in records]
        document = {"schema": EXPORT_SCHEMA, "session": session, "verdict": asdict(verdict), "records": entries}
        return json.dumps(document, indent=2) + "\n"
    state = "intact" if verdict.ok else f"damaged: {verdict.reason}"
    parts = [f"# Session {session}", f"{verdict.records} records, {state}. Head checksum `{verdict.head}`."]
    return "\n\n".join([*parts, *dialogue(records)]) + "\n"


def _verdict(found: Scan) -> Verdict:
    reason = found.reason
    if found.torn_bytes:
        reason = f"the last {found.torn_bytes} bytes are an incomplete record: the run died while writing it"
    count = len(found.records)
    if reason is None and not count:
        reason = "holds no record: it was emptied"
    head = found.records[-1].checksum if found.records else GENESIS
    return Verdict(reason is None, count, None if reason is None else count, reason, found.torn_bytes, head)


def _changed(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _scan(session: str, folder: Path | None) -> Scan:
    path = session_path(session, folder)
    lock = session_lock(path)
    try:
        if not path.exists():
            raise NotFoundError("no such session", where=session, hint="`asap sessions list` shows them")
        with suppress(OSError, NotImplementedError):
            lock.acquire()
        return scan(path.read_bytes())
    except OSError as error:
        raise BadInputError(f"cannot be read: {error.strerror}", where=str(path)) from error
    finally:
        lock.release()
