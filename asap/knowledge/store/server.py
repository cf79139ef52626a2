"""A ``chroma run`` server that a team shares: what one client adds is synchronised with all."""

import json
import urllib.parse
import urllib.request
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from asap.core.errors import AsapError, UsageError
from asap.core.files import write_atomically
from asap.core.locking import locked
from asap.knowledge.document import Corpus, IndexedDocument, digest
from asap.knowledge.index.hybrid import Index
from asap.knowledge.index.lexical import LexicalIndex, update
from asap.knowledge.index.vectors import (
    BATCH,
    collection_name,
    collection_of,
    delete,
    keys_of,
    nearest,
    server_client,
    upsert,
)
from asap.knowledge.paths import LOCK_TIMEOUT_S, store_folder
from asap.knowledge.store import generation

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

    from asap.knowledge.index.embedding import Embedder


def upload(collection: "Collection", corpus: Corpus, embedder: "Embedder", fingerprint: str, root: Path) -> None:
    """Upload what changed here since the last time that this client spoke to this collection."""
    marker = root / f"{collection.name}.pushed.json"
    pushed = _read_marker(marker, str(collection.id))
    if pushed.get("fingerprint") == fingerprint:
        return
    sources: defaultdict[str, dict[str, IndexedDocument]] = defaultdict(dict)
    for document in corpus.documents():
        sources[document.source][document.key] = document
    digests = {source: digest(*sorted(documents)) for source, documents in sources.items()}
    before: dict[str, str] = pushed.get("sources", {})
    outdated = [source for source in digests.keys() | before.keys() if digests.get(source) != before.get(source)]
    changes = [
        _upload_source(collection, source, sources.get(source, {}), embedder, replace=source in before)
        for source in sorted(outdated)
    ]
    if any(changes):
        change_revision(collection)
    content = {"collection": str(collection.id), "fingerprint": fingerprint, "sources": digests}
    write_atomically(marker, json.dumps(content, indent=1))


def download(collection: "Collection", corpus: Corpus, root: Path) -> tuple[str, Path]:
    """The stamp and the word index of a mirror that holds what the server holds."""
    stamp = f"{collection.id}:{revision(collection)}:{collection.count()}"
    previous = generation.in_use(root)
    if previous is not None and generation.damage(previous):
        previous = None
    if previous is not None and generation.collections(previous).get(collection.name) == stamp:
        return stamp, previous / f"{collection.name}.sqlite"
    generation.discard_unfinished(root)
    folder = generation.create(root, previous)
    words = folder / f"{collection.name}.sqlite"
    _mirror(collection, corpus, words, stamp)
    stamps = generation.collections(previous) if previous else {}
    generation.write_manifest(folder, stamps | {collection.name: stamp})
    generation.publish(root, folder)
    return stamp, words


def revision(collection: "Collection") -> str:
    """Changes with every change of the collection."""
    return str((collection.metadata or {}).get("revision", ""))


def change_revision(collection: "Collection") -> None:
    """Give the collection a new revision, so that other clients see the change."""
    collection.modify(metadata={"revision": uuid.uuid4().hex})


def _upload_source(
    collection: "Collection", source: str, wanted: dict[str, IndexedDocument], embedder: "Embedder", *, replace: bool
) -> bool:
    """Whether anything was written. A named source that another client brought first stays until ours changes."""
    present = keys_of(collection, source)
    if source and present and not replace:
        return False
    stale = sorted(present - wanted.keys()) if source else []
    added = [document for key, document in wanted.items() if key not in present]
    upsert(collection, added, embedder, payloads=True)
    delete(collection, stale)
    return bool(added or stale)


def _mirror(collection: "Collection", corpus: Corpus, words: Path, stamp: str) -> None:
    mirrored: set[str] = set()
    if words.exists():
        index = LexicalIndex.read(words)
        mirrored = index.keys()
        index.close()
    remote = keys_of(collection)
    own = {document.id: document.key for document in corpus.documents()}
    fetched = _fetched(collection, corpus, sorted(remote - mirrored))
    added = [document for document in fetched if own.get(document.id, document.key) == document.key]
    shared = frozenset(document.key for document in added if document.id not in own)
    update(words, add=added, remove=mirrored - remote, state=stamp, shared=shared)


def _fetched(collection: "Collection", corpus: Corpus, keys: list[str]) -> list[IndexedDocument]:
    documents: list[IndexedDocument] = []
    for start in range(0, len(keys), BATCH):
        page = collection.get(ids=keys[start : start + BATCH], include=["documents", "metadatas"])
        for key, payload, facts in zip(page["ids"], page["documents"] or [], page["metadatas"] or [], strict=True):
            document = corpus.read(payload or "", str((facts or {}).get("source", "")))
            if document is not None and document.key == key:
                documents.append(document)
    return documents


def _read_marker(marker: Path, collection: str) -> dict:
    try:
        content = json.loads(marker.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) and content.get("collection") == collection else {}


HEARTBEAT_SECONDS = 3.0  # a server that takes longer counts as down; judgement: when it does
_DEFAULT_PORTS = {"http": 8000, "https": 443}  # chroma's, and that of HTTPS


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
