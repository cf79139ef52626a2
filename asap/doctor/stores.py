"""Each store of the user's folder: what is wrong with it, and how it is mended.

A repair rebuilds what can be rebuilt. What cannot is moved to ``damaged/DATE`` in the same folder, and nothing is
deleted but caches.
"""

import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from asap.core.errors import AsapError, BadInputError
from asap.core.files import home, private_folder, write_atomically
from asap.core.stores import StoreWarning
from asap.doctor.packages import Check, ok, problem
from asap.hardware.catalogue import read_chip
from asap.history.files import RecordCorpus, damaged_records, load_records, own_file, write_own
from asap.knowledge.notes.corpus import NoteCorpus
from asap.knowledge.notes.ingested import chunk_files, read_chunks
from asap.knowledge.paths import store_folder
from asap.knowledge.store import generation
from asap.knowledge.store.access import rebuild
from asap.prediction.uncertainty.own_runs import load_own_runs
from asap.sharding_memory import Kind, Worklog, sessions, verify_session
from asap.sharding_memory.worklog import session_path

CONVERSATIONS = "conversations.sqlite"
_DAMAGED = "damaged"
_BESIDE = ("-wal", "-shm", "-journal")
_FIX = "asap doctor --repair"

Damaged = Iterator[tuple[Path, str]]
"""What cannot be used, each with the reason."""


@dataclass(frozen=True)
class Store:
    """One store.

    Args:
        name: as it is shown.
        damaged: what cannot be used, with the reason; nothing where all is well.
        mend: mends one of them; returns what was done.
    """

    name: str
    damaged: Callable[[], Damaged]
    mend: Callable[[Path], str]

    def check(self) -> Check:
        """Whether the store can be used."""
        found = self._found()
        if not found:
            return ok(self.name, "intact")
        path, reason = found[0]
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        return problem(self.name, f"{path}: {reason}{more}", _FIX)

    def repair(self) -> Iterator[str]:
        """Mend what is damaged; what was done, a line each."""
        for path, reason in self._found():
            try:
                yield f"{self.name}: {path}: {reason}: {self.mend(path)}"
            except (AsapError, OSError) as error:
                yield f"{self.name}: {path}: {reason}: cannot be mended: {error}"

    def _found(self) -> list[tuple[Path, str]]:
        try:
            return list(self.damaged())
        except OSError as error:
            return [(Path(error.filename or home()), error.strerror or str(error))]


def move_aside(path: Path) -> str:
    """Move a file or a folder to ``damaged``; says where it is now."""
    place = home() / _DAMAGED / f"{datetime.now(UTC):%Y%m%d-%H%M%S}" / path.relative_to(home())
    private_folder(place.parent)
    path.rename(place)
    for beside in (path.with_name(path.name + end) for end in _BESIDE):
        with suppress(FileNotFoundError):
            beside.rename(place.with_name(beside.name))
    return f"moved to {place}"


def _read_by(read: Callable[[Path], object], paths: Callable[[], list[Path]]) -> Callable[[], Damaged]:
    def damaged() -> Damaged:
        for path in paths():
            try:
                read(path)
            except AsapError as error:
                yield path, error.message

    return damaged


def _damaged_conversations() -> Damaged:
    path = home() / CONVERSATIONS
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
            database.execute("SELECT id FROM sessions LIMIT 1").fetchone()
    except sqlite3.Error as error:
        found = str(error)
    if found != "ok":
        yield path, found


def _damaged_index() -> Damaged:
    root = store_folder()
    if not root.exists():
        return
    folder = generation.in_use(root) if root.is_dir() else None
    reason = "holds no index" if folder is None else generation.damage(folder)
    if reason is not None and (not root.is_dir() or any(root.iterdir())):
        yield root, reason


def _rebuilt(root: Path) -> str:
    if not root.is_dir():
        move_aside(root)
    return f"rebuilt, {rebuild(NoteCorpus())} notes and {rebuild(RecordCorpus())} records"


def _damaged_history() -> Damaged:
    damage = damaged_records()
    if damage is not None:
        yield own_file(), str(damage)


def _good_records(path: Path) -> str:
    with warnings.catch_warnings(action="ignore", category=StoreWarning):
        kept = [record for record in load_records() if record.origin == "user"]
    moved = move_aside(path)
    write_own(kept)
    return f"{moved}; its {len(kept)} good records are kept"


def _chunks(path: Path) -> None:
    if not list(read_chunks(path)):
        raise BadInputError("holds nothing", where=str(path))


def _damaged_worklogs() -> Damaged:
    for name in sessions():
        try:
            verdict = verify_session(name)
        except AsapError as error:
            yield session_path(name), error.message
            continue
        if not verdict.ok:
            yield session_path(name), verdict.reason or "damaged"


def _good_prefix(path: Path) -> str:
    """The records before the damage stay under their name, followed by a note of it."""
    verdict = None
    with suppress(AsapError):
        verdict = verify_session(path.stem)
    data = path.read_bytes() if verdict is not None and verdict.records else b""
    moved = move_aside(path)
    if verdict is None or not verdict.records:
        return moved
    lines = data.split(b"\n")[: verdict.records]
    write_atomically(path, b"\n".join([*lines, b""]).decode())
    Worklog(path.stem).append(Kind.NOTE, {"event": "repaired", "reason": verdict.reason, "damaged": moved})
    return f"{moved}; its first {verdict.records} records are kept"


def _open_to_others() -> Damaged:
    for path in (home(), *home().rglob("*")):
        if not path.is_symlink() and path.stat().st_mode & 0o077 and path.parent != home() / "remote":
            yield path, f"mode {path.stat().st_mode & 0o777:04o} lets others in"


def _closed(path: Path) -> str:
    path.chmod(0o700 if path.is_dir() else 0o600)
    return "closed"


STORES = (
    Store("conversations", _damaged_conversations, move_aside),
    Store("search index", _damaged_index, _rebuilt),
    Store("own runs", _read_by(lambda path: load_own_runs(), lambda: list(home().glob("own_runs.json"))), move_aside),
    Store("own precedents", _damaged_history, _good_records),
    Store("ingested notes", _read_by(_chunks, chunk_files), lambda path: move_aside(path.parent)),
    Store("own chips", _read_by(read_chip, lambda: sorted((home() / "chips").glob("*.toml"))), move_aside),
    Store("worklogs", _damaged_worklogs, _good_prefix),
    Store("permissions", _open_to_others, _closed),
)
