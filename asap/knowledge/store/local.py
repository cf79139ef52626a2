"""The local store: generations under ``$ASAP_HOME/chroma``, rebuilt whenever they do not match the files."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from asap.core.errors import AsapError
from asap.core.locking import locked
from asap.core.stores import warn_of_store
from asap.knowledge.document import Corpus, IndexedDocument
from asap.knowledge.index.hybrid import Index, Nearest
from asap.knowledge.index.lexical import LexicalIndex, update
from asap.knowledge.index.vectors import collection_name, collection_of, delete, folder_client, keys_of, nearest, upsert
from asap.knowledge.paths import LOCK_TIMEOUT_S, store_folder
from asap.knowledge.store import generation

if TYPE_CHECKING:
    from chromadb.api.client import Client

    from asap.knowledge.index.embedding import Embedder


class _DamageError(Exception):
    """The store does not match its manifest."""


def open_local(corpus: Corpus, embedder: "Embedder", *, rebuild: bool = False) -> Index:
    """The up-to-date index of a corpus; built first if that is needed or ``rebuild`` is set."""
    root, name = store_folder(), collection_name(corpus, embedder)
    with locked(root, "the store", LOCK_TIMEOUT_S):
        fingerprint = corpus.fingerprint()
        folder = None if rebuild else generation.in_use(root)
        if folder is not None and (reason := generation.damage(folder)):
            _warn_damaged(reason)
            folder = None
        if folder is not None and generation.collections(folder).get(name, "").startswith(f"{fingerprint}:"):
            try:
                return _opened_index(folder, name, embedder)
            except _DamageError as error:
                _warn_damaged(str(error))
                folder = None
        try:
            folder = _new_generation(root, folder, corpus, embedder, fingerprint)
        except _DamageError as error:
            _warn_damaged(str(error))
            folder = _new_generation(root, None, corpus, embedder, fingerprint)
        return _opened_index(folder, name, embedder)


def _warn_damaged(reason: str) -> None:
    warn_of_store(f"the search index was damaged ({reason}) and is rebuilt")


def _opened_index(folder: Path, name: str, embedder: "Embedder") -> Index:
    stamp = generation.collections(folder)[name]
    fingerprint, _, count = stamp.partition(":")
    try:
        neighbours, vectors, release = _neighbours(folder, name)
        lexical = LexicalIndex.read(folder / f"{name}.sqlite")
        words = lexical.state()
    except Exception as error:
        raise _DamageError(type(error).__name__) from error
    if vectors != int(count) or words != fingerprint:
        release()
        raise _DamageError(f"{vectors} vectors instead of {count}")

    def is_current(wanted: str) -> bool:
        return wanted == fingerprint and generation.in_use(folder.parent) == folder

    return Index(lexical, neighbours, embedder, stamp, is_current, release)


def _neighbours(folder: Path, name: str) -> tuple[Nearest, int, Callable[[], None]]:
    """A nearest-neighbour search, the number of its vectors, and how to release it."""
    excerpt = folder / f"{name}.npz"
    if excerpt.exists():
        from asap.knowledge.index.hybrid import Matrix

        matrix = Matrix.read(excerpt)
        return matrix.nearest, len(matrix.keys), lambda: None
    client = folder_client(folder)
    collection = client.get_collection(name, embedding_function=None)
    return partial(nearest, collection), collection.count(), client.close


def _new_generation(root: Path, previous: Path | None, corpus: Corpus, embedder: "Embedder", fingerprint: str) -> Path:
    """Write a new generation: an update of the previous one, or from scratch."""
    name = collection_name(corpus, embedder)
    wanted = {document.key: document for document in corpus.documents()}
    generation.discard_unfinished(root)
    folder = generation.create(root, previous)
    stamps = generation.collections(folder)
    try:
        added, removed = _update_vectors(folder, name, stamps, wanted, embedder)
    except (AsapError, _DamageError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Chroma's Rust is no Exception
        if previous is None and isinstance(error, Exception):
            raise
        raise _DamageError(type(error).__name__) from error
    update(folder / f"{name}.sqlite", add=added, remove=removed, state=fingerprint)
    generation.write_manifest(folder, stamps | {name: f"{fingerprint}:{len(wanted)}"})
    generation.publish(root, folder)
    return folder


def _update_vectors(
    folder: Path, name: str, stamps: dict[str, str], wanted: dict[str, IndexedDocument], embedder: "Embedder"
) -> tuple[list[IndexedDocument], set[str]]:
    """Bring the collection up to date; returns the added documents and the removed keys."""
    from asap.knowledge.index.hybrid import write_matrix

    with closing(folder_client(folder)) as client:
        _delete_predecessors(client, folder, name, stamps)
        collection = collection_of(client, name, flushed=True)
        present = keys_of(collection)
        if name in stamps and not stamps[name].endswith(f":{len(present)}"):
            raise _DamageError(f"{len(present)} vectors are not those that were written")
        removed = present - wanted.keys()
        added = [document for key, document in wanted.items() if key not in present]
        delete(collection, sorted(removed))
        upsert(collection, added, embedder, payloads=False)
        write_matrix(folder / f"{name}.npz", collection)
    return added, removed


def _delete_predecessors(client: "Client", folder: Path, name: str, stamps: dict[str, str]) -> None:
    """Delete the collections of earlier versions of the same embedder; nothing reads them any more."""
    family = name.rpartition("-")[0]
    for old in [known for known in stamps if known.rpartition("-")[0] == family and known != name]:
        client.delete_collection(old)
        for suffix in (".sqlite", ".npz"):
            (folder / f"{old}{suffix}").unlink(missing_ok=True)
        del stamps[old]
