"""A document of an index: fields to search and a payload to return."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Protocol

FIELD_WEIGHTS = {"title": 4.0, "keywords": 3.0, "body": 1.0, "detail": 0.5}
"""How often a word of each field counts. Judgement: the order of notes and records found."""


@dataclass(frozen=True)
class IndexedDocument:
    """Text in four fields of falling weight (:data:`FIELD_WEIGHTS`), and the JSON it was made from."""

    id: str
    title: str
    keywords: str
    body: str
    detail: str
    payload: str
    source: str = ""

    @cached_property
    def key(self) -> str:
        """The ID with a digest of the content: another content is another key."""
        return f"{self.id}@{digest(self.payload)}"

    @property
    def fields(self) -> dict[str, str]:
        """The searchable text by field, in the order of :data:`FIELD_WEIGHTS`."""
        return {name: getattr(self, name) for name in FIELD_WEIGHTS}

    @property
    def text(self) -> str:
        """All fields as one text, for embedders that read prose."""
        return "\n".join(filter(None, self.fields.values()))


class Corpus(Protocol):
    """A set of documents: the files are authoritative, the index is a cache."""

    name: str

    def fingerprint(self) -> str:
        """Changes whenever a document changes; cheap enough to compute before every query."""
        ...

    def documents(self) -> list[IndexedDocument]:
        """All documents, read from the files."""
        ...

    def read(self, payload: str, source: str) -> IndexedDocument | None:
        """A document that another client stored; ``None`` if it is not of this corpus."""
        ...


def digest(*parts: str | bytes) -> str:
    """Sixteen hexadecimal digits of BLAKE2b over the parts."""
    state = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()


def files_digest(paths: Iterable[Path]) -> str:
    """A digest of names and contents; a file is read again only when its stat has changed, and may be unreadable."""
    parts: list[str] = []
    for path in paths:
        try:
            stat = path.stat()
            parts += [path.name, _content_digest(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)]
        except FileNotFoundError:
            continue
        except OSError as error:
            parts += [path.name, str(error.errno)]
    return digest(*parts)


@lru_cache(maxsize=1024)
def _content_digest(path: Path, size: int, modified: int, inode: int) -> str:
    del size, modified, inode
    return digest(path.read_bytes())
