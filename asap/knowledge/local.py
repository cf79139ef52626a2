"""The local store: generations under ``$ASAP_HOME/chroma``, rebuilt whenever they do not match the files."""

import warnings
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from asap.core.errors import AsapError
from asap.knowledge import generation
from asap.knowledge.document import Document, Shelf
from asap.knowledge.index import Index, Nearest
from asap.knowledge.lexical import LexicalIndex, update
from asap.knowledge.place import StoreWarning, locked, store_root
from asap.knowledge.vectors import collection_name, collection_of, drop, folder_client, keys_of, nearest, put

if TYPE_CHECKING:
    from chromadb.api.client import Client

    from asap.knowledge.embedding import Embedder


class _DamageError(Exception):
    """What was opened is not what was sealed."""


def open_local(shelf: Shelf, embedder: "Embedder", *, afresh: bool = False) -> Index:
    """The index of a shelf as its files are now; written first if that is needed, or asked for by ``afresh``."""
    root, name = store_root(), collection_name(shelf, embedder)
    with locked(root):
        fingerprint = shelf.fingerprint()
        folder = None if afresh else generation.current(root)
        if folder is not None and (reason := generation.damage(folder)):
            _say_damaged(reason)
            folder = None
        if folder is not None and generation.collections(folder).get(name, "").startswith(f"{fingerprint}:"):
            try:
                return _reading(folder, name, embedder)
            except _DamageError as error:
                _say_damaged(str(error))
                folder = None
        try:
            folder = _written(root, folder, shelf, embedder, fingerprint)
        except _DamageError as error:
            _say_damaged(str(error))
            folder = _written(root, None, shelf, embedder, fingerprint)
        return _reading(folder, name, embedder)


def _say_damaged(reason: str) -> None:
    warnings.warn(f"the search index was damaged ({reason}) and is rebuilt", StoreWarning, stacklevel=2)


def _reading(folder: Path, name: str, embedder: "Embedder") -> Index:
    stamp = generation.collections(folder)[name]
    fingerprint, _, count = stamp.partition(":")
    try:
        neighbours, vectors, release = _neighbours(folder, name)
        lexical = LexicalIndex(folder / f"{name}.sqlite")
        words = lexical.state()
    except Exception as error:
        raise _DamageError(type(error).__name__) from error
    if vectors != int(count) or words != fingerprint:
        release()
        raise _DamageError(f"{vectors} vectors instead of {count}")

    def is_current(wanted: str) -> bool:
        return wanted == fingerprint and generation.current(folder.parent) == folder

    return Index(lexical, neighbours, embedder, stamp, is_current, release)


def _neighbours(folder: Path, name: str) -> tuple[Nearest, int, Callable[[], None]]:
    """What finds the nearest vectors, how many it holds, and how to let go of it."""
    excerpt = folder / f"{name}.npz"
    if excerpt.exists():
        from asap.knowledge.matrix import Matrix

        matrix = Matrix(excerpt)
        return matrix.nearest, len(matrix.keys), lambda: None
    client = folder_client(folder)
    collection = client.get_collection(name, embedding_function=None)
    return partial(nearest, collection), collection.count(), client.close


def _written(root: Path, previous: Path | None, shelf: Shelf, embedder: "Embedder", fingerprint: str) -> Path:
    """A new generation: the previous one brought up to date, or all anew."""
    name = collection_name(shelf, embedder)
    wanted = {document.key: document for document in shelf.documents()}
    generation.discard_unsealed(root)
    folder = generation.begin(root, previous)
    stamps = generation.collections(folder)
    try:
        added, removed = _vectors_written(folder, name, stamps, wanted, embedder)
    except (AsapError, _DamageError):
        raise
    except Exception as error:
        if previous is None:
            raise
        raise _DamageError(type(error).__name__) from error
    update(folder / f"{name}.sqlite", add=added, remove=removed, state=fingerprint)
    generation.seal(folder, stamps | {name: f"{fingerprint}:{len(wanted)}"})
    generation.publish(root, folder)
    return folder


def _vectors_written(
    folder: Path, name: str, stamps: dict[str, str], wanted: dict[str, Document], embedder: "Embedder"
) -> tuple[list[Document], set[str]]:
    """Make the collection hold what is wanted; what that added and removed."""
    from asap.knowledge.matrix import write_matrix

    with closing(folder_client(folder)) as client:
        _drop_ancestors(client, folder, name, stamps)
        collection = collection_of(client, name, flushed=True)
        present = keys_of(collection)
        if name in stamps and not stamps[name].endswith(f":{len(present)}"):
            raise _DamageError(f"{len(present)} vectors are not those that were written")
        removed = present - wanted.keys()
        added = [document for key, document in wanted.items() if key not in present]
        drop(collection, sorted(removed))
        put(collection, added, embedder, payloads=False)
        write_matrix(folder / f"{name}.npz", collection)
    return added, removed


def _drop_ancestors(client: "Client", folder: Path, name: str, stamps: dict[str, str]) -> None:
    """Drop what an earlier space of the same family left: nothing will ask for it again."""
    family = name.rpartition("-")[0]
    for old in [known for known in stamps if known.rpartition("-")[0] == family and known != name]:
        client.delete_collection(old)
        for suffix in (".sqlite", ".npz"):
            (folder / f"{old}{suffix}").unlink(missing_ok=True)
        del stamps[old]
