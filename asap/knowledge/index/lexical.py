"""Documents and their BM25 ranking in one SQLite file, which is written once and then only read."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from asap.knowledge.document import FIELD_WEIGHTS, IndexedDocument
from asap.knowledge.index.terms import terms

_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents(
    row INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, id TEXT NOT NULL, shared INTEGER NOT NULL, payload TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_id ON documents(id);
CREATE TABLE IF NOT EXISTS state(value TEXT NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS fields
    USING fts5(title, keywords, body, detail, tokenize="ascii tokenchars '_'");
"""


@dataclass(frozen=True)
class StoredDocument:
    """A document as the index gives it back."""

    key: str
    id: str
    payload: str
    shared: bool
    terms: frozenset[str] = frozenset()


class LexicalIndex:
    """Read-only view; :func:`update` writes."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    @classmethod
    def read(cls, path: Path) -> "LexicalIndex":
        """The index in a file."""
        return cls(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False))

    @classmethod
    def in_memory(cls, documents: Iterable[IndexedDocument], state: str) -> "LexicalIndex":
        """An index that lies in no file."""
        database = sqlite3.connect(":memory:", check_same_thread=False)
        _change(database, documents, (), state, frozenset())
        return cls(database)

    def close(self) -> None:
        """Release the file."""
        self._database.close()

    def state(self) -> str | None:
        """What :func:`update` was told that the content stands for."""
        row = self._rows("SELECT value FROM state")
        return row[0][0] if row else None

    def keys(self) -> set[str]:
        """Keys of all documents."""
        return {key for (key,) in self._rows("SELECT key FROM documents")}

    def ranked(self, words: Sequence[str], limit: int) -> list[tuple[str, float]]:
        """Keys and BM25 scores (higher is better) of the best documents that have any of the terms."""
        if not words:
            return []
        weights = ", ".join(str(weight) for weight in FIELD_WEIGHTS.values())
        sql = (
            f"SELECT key, found.score FROM (SELECT rowid, -bm25(fields, {weights}) AS score FROM fields"
            " WHERE fields MATCH ? ORDER BY score DESC, rowid LIMIT ?) AS found JOIN documents ON row = found.rowid"
            " ORDER BY found.score DESC, key"
        )
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        return self._rows(sql, match, limit)

    def stored(self, keys: Sequence[str]) -> dict[str, StoredDocument]:
        """Documents by key, with their terms; unknown keys are left out."""
        sql = (
            "SELECT key, id, payload, shared, title || ' ' || keywords || ' ' || body || ' ' || detail"
            f" FROM documents JOIN fields ON fields.rowid = row WHERE key IN ({', '.join('?' * len(keys))})"
        )
        rows = self._rows(sql, *keys)
        return {
            key: StoredDocument(key, id_, payload, bool(shared), frozenset(words.split()))
            for key, id_, payload, shared, words in rows
        }

    def everything(self) -> list[StoredDocument]:
        """All documents in the order of their IDs."""
        rows = self._rows("SELECT key, id, payload, shared FROM documents ORDER BY id, key")
        return [StoredDocument(key, id_, payload, bool(shared)) for key, id_, payload, shared in rows]

    def by_id(self, id_: str) -> StoredDocument | None:
        """The document of this ID; the user's own before one that is only shared."""
        rows = self._rows("SELECT key, id, payload, shared FROM documents WHERE id = ? ORDER BY shared, key", id_)
        return StoredDocument(rows[0][0], rows[0][1], rows[0][2], bool(rows[0][3])) if rows else None

    def _rows(self, sql: str, *values: object) -> list[tuple]:
        return self._database.execute(sql, values).fetchall()


def update(
    path: Path,
    *,
    add: Iterable[IndexedDocument],
    remove: Iterable[str],
    state: str,
    shared: frozenset[str] = frozenset(),
) -> None:
    """Write the file or change it; ``shared`` are the keys that only a server holds."""
    database = sqlite3.connect(path)
    try:
        _change(database, add, remove, state, shared)
    finally:
        database.close()


def _change(
    database: sqlite3.Connection,
    add: Iterable[IndexedDocument],
    remove: Iterable[str],
    state: str,
    shared: frozenset[str],
) -> None:
    database.executescript(_SCHEMA)
    with database:
        for key in remove:
            row = database.execute("DELETE FROM documents WHERE key = ? RETURNING row", (key,)).fetchone()
            if row:
                database.execute("DELETE FROM fields WHERE rowid = ?", row)
        for document in add:
            insert = "INSERT OR IGNORE INTO documents(key, id, shared, payload) VALUES (?, ?, ?, ?) RETURNING row"
            values = (document.key, document.id, document.key in shared, document.payload)
            row = database.execute(insert, values).fetchone()
            if row:
                words = (" ".join(terms(text)) for text in document.fields.values())
                columns = "INSERT INTO fields(rowid, title, keywords, body, detail) VALUES (?, ?, ?, ?, ?)"
                database.execute(columns, (*row, *words))
        database.execute("DELETE FROM state")
        database.execute("INSERT INTO state VALUES (?)", (state,))
