"""A ``chroma run`` server that a team shares: what one client adds, all find.

The server holds the vectors and the documents; each client keeps a mirror of the documents for the ranking by words
and follows the server's revision. What comes from the server was written by others: it is marked as shared and never
replaces a local document.
"""

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from asap.core.errors import AsapError, UsageError
from asap.core.locking import locked
from asap.knowledge.document import Corpus, digest
from asap.knowledge.index.hybrid import Index
from asap.knowledge.index.lexical import LexicalIndex
from asap.knowledge.index.vectors import collection_name, collection_of, delete, keys_of, nearest, server_client
from asap.knowledge.paths import LOCK_TIMEOUT_S, store_folder
from asap.knowledge.store.synchronise import change_revision, download, revision, upload

if TYPE_CHECKING:
    from chromadb.api.client import Client

    from asap.knowledge.index.embedding import Embedder

HEARTBEAT_SECONDS = 3.0
_DEFAULT_PORTS = {"http": 8000, "https": 443}


class ServerDownError(Exception):
    """The server does not answer, or not as a Chroma server would."""


@dataclass(frozen=True)
class Address:
    """Where the server listens."""

    scheme: str
    host: str
    port: int

    @classmethod
    def parse(cls, url: str) -> "Address":
        """Read ``http://host:port``.

        Raises:
            UsageError: it is something else.
        """
        try:
            parts = urllib.parse.urlsplit(url)
            port = parts.port or _DEFAULT_PORTS[parts.scheme]
        except (ValueError, KeyError):
            parts, port = None, 0
        if parts is None or not parts.hostname:
            raise UsageError("is not a server's URL", where=f"ASAP_CHROMA_URL={url}", hint="write http://host:8000")
        return cls(parts.scheme, parts.hostname, port)

    @property
    def url(self) -> str:
        """The canonical form."""
        return f"{self.scheme}://{self.host}:{self.port}"

    def client(self) -> "Client":
        """A client of the server there, which has just answered."""
        with urllib.request.urlopen(f"{self.url}/api/v2/heartbeat", timeout=HEARTBEAT_SECONDS) as answer:
            json.load(answer)["nanosecond heartbeat"]
        return server_client(self.host, self.port, self.scheme == "https")


def open_server(url: str, corpus: Corpus, embedder: "Embedder") -> Index:
    """The index of a corpus as the server has it, after local documents were added to it.

    Raises:
        ServerDownError: the server does not answer.
        UsageError: it is not a URL.
    """
    address = Address.parse(url)
    root = store_folder() / f"server-{digest(address.url)}"
    with locked(root, "the store", LOCK_TIMEOUT_S), _service():
        client = address.client()
        collection = collection_of(client, collection_name(corpus, embedder), flushed=False)
        fingerprint = corpus.fingerprint()
        upload(collection, corpus, embedder, fingerprint, root)
        stamp, words = download(collection, corpus, root)

    def is_current(wanted: str) -> bool:
        with _service():
            now = client.get_collection(collection.name, embedding_function=None)
            return wanted == fingerprint and (now.id, revision(now)) == (collection.id, revision(collection))

    return Index(LexicalIndex.read(words), partial(nearest, collection), embedder, stamp, is_current, client.close)


def remove_shared(url: str, corpus: Corpus, embedder: "Embedder", source: str) -> int:
    """Delete all documents of a source from the server; returns their number.

    Raises:
        ServerDownError: the server does not answer.
        UsageError: it is not a URL.
    """
    address = Address.parse(url)
    with _service():
        client = address.client()
        collection = collection_of(client, collection_name(corpus, embedder), flushed=False)
        keys = keys_of(collection, source)
        delete(collection, sorted(keys))
        change_revision(collection)
        client.close()
    return len(keys)


@contextmanager
def _service() -> Iterator[None]:
    """Whatever the client raises means that the server cannot be used."""
    try:
        yield
    except (AsapError, ServerDownError):
        raise
    except Exception as error:
        raise ServerDownError(f"{type(error).__name__}: {error}") from error
