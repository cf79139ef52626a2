"""Keeping a client and a shared server in step: local documents go up, everyone's documents come down.

Every document has a source: a name for what was ingested under it, empty for notes and records. A named source
belongs to who changed it last; documents without one are only ever added.
"""

import json
import uuid
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from asap.core.files import write_atomically
from asap.knowledge import generation
from asap.knowledge.document import Document, Shelf, digest
from asap.knowledge.lexical import LexicalIndex, update
from asap.knowledge.vectors import BATCH, drop, keys_of, put

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

    from asap.knowledge.embedding import Embedder


def push(collection: "Collection", shelf: Shelf, embedder: "Embedder", fingerprint: str, root: Path) -> None:
    """Upload what changed here since the last time that this client spoke to this collection."""
    marker = root / f"{collection.name}.pushed.json"
    pushed = _read_marker(marker, str(collection.id))
    if pushed.get("fingerprint") == fingerprint:
        return
    sources: defaultdict[str, dict[str, Document]] = defaultdict(dict)
    for document in shelf.documents():
        sources[document.source][document.key] = document
    digests = {source: digest(*sorted(documents)) for source, documents in sources.items()}
    before: dict[str, str] = pushed.get("sources", {})
    outdated = [source for source in digests.keys() | before.keys() if digests.get(source) != before.get(source)]
    changes = [
        _push_source(collection, source, sources.get(source, {}), embedder, replace=source in before)
        for source in sorted(outdated)
    ]
    if any(changes):
        revise(collection)
    content = {"collection": str(collection.id), "fingerprint": fingerprint, "sources": digests}
    write_atomically(marker, json.dumps(content, indent=1))


def pull(collection: "Collection", shelf: Shelf, root: Path) -> tuple[str, Path]:
    """The stamp and the word index of a mirror that holds what the server holds."""
    stamp = f"{collection.id}:{revision(collection)}:{collection.count()}"
    previous = generation.current(root)
    if previous is not None and generation.damage(previous):
        previous = None
    if previous is not None and generation.collections(previous).get(collection.name) == stamp:
        return stamp, previous / f"{collection.name}.sqlite"
    generation.discard_unsealed(root)
    folder = generation.begin(root, previous)
    words = folder / f"{collection.name}.sqlite"
    _mirror(collection, shelf, words, stamp)
    stamps = generation.collections(previous) if previous else {}
    generation.seal(folder, stamps | {collection.name: stamp})
    generation.publish(root, folder)
    return stamp, words


def revision(collection: "Collection") -> str:
    """Changes with every change of the collection."""
    return str((collection.metadata or {}).get("revision", ""))


def revise(collection: "Collection") -> None:
    """Tell the other clients that something changed."""
    collection.modify(metadata={"revision": uuid.uuid4().hex})


def _push_source(
    collection: "Collection", source: str, wanted: dict[str, Document], embedder: "Embedder", *, replace: bool
) -> bool:
    """Whether anything was written. A named source that another client brought first stays until ours changes."""
    present = keys_of(collection, source)
    if source and present and not replace:
        return False
    stale = sorted(present - wanted.keys()) if source else []
    added = [document for key, document in wanted.items() if key not in present]
    put(collection, added, embedder, payloads=True)
    drop(collection, stale)
    return bool(added or stale)


def _mirror(collection: "Collection", shelf: Shelf, words: Path, stamp: str) -> None:
    mirrored: set[str] = set()
    if words.exists():
        index = LexicalIndex(words)
        mirrored = index.keys()
        index.close()
    remote = keys_of(collection)
    own = {document.id: document.key for document in shelf.documents()}
    fetched = _fetched(collection, shelf, sorted(remote - mirrored))
    added = [document for document in fetched if own.get(document.id, document.key) == document.key]
    shared = frozenset(document.key for document in added if document.id not in own)
    update(words, add=added, remove=mirrored - remote, state=stamp, shared=shared)


def _fetched(collection: "Collection", shelf: Shelf, keys: list[str]) -> list[Document]:
    documents: list[Document] = []
    for start in range(0, len(keys), BATCH):
        page = collection.get(ids=keys[start : start + BATCH], include=["documents", "metadatas"])
        for key, payload, facts in zip(page["ids"], page["documents"] or [], page["metadatas"] or [], strict=True):
            document = shelf.read(payload or "", str((facts or {}).get("source", "")))
            if document is not None and document.key == key:
                documents.append(document)
    return documents


def _read_marker(marker: Path, collection: str) -> dict:
    try:
        content = json.loads(marker.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) and content.get("collection") == collection else {}
