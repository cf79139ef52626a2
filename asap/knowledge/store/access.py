"""Access to the store: the server in ``ASAP_CHROMA_URL`` if it is up, else the local one.

If the server cannot be used, a :class:`~asap.core.stores.StoreWarning` says so, and it is tried again later; if the
local store cannot be used either, the search runs in memory.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from asap.core.errors import AsapError, ServiceError, UsageError
from asap.core.locking import LockedError
from asap.core.stores import REPAIR, warn_of_store
from asap.core.text import plain
from asap.knowledge.document import Corpus
from asap.knowledge.index.embedders import bundled_embedder, configured_embedder
from asap.knowledge.index.embedding import Embedder
from asap.knowledge.index.hybrid import Index, Matrix
from asap.knowledge.index.lexical import LexicalIndex, StoredDocument
from asap.knowledge.index.vectors import collection_name
from asap.knowledge.paths import SERVER, store_folder
from asap.knowledge.store.local import open_local
from asap.knowledge.store.server import Address, ServerDownError, open_server, remove_shared

if TYPE_CHECKING:
    from asap.knowledge.index.embedding import Embedder

RETRY_SECONDS = 30.0  # a store that failed is left alone; judgement: when it is asked again
_ATTEMPTS = 2  # the second on an index that was built anew
_Answer = TypeVar("_Answer")

_lock = threading.RLock()
_opened: dict[tuple[str, ...], Index] = {}
_down_until: dict[str, float] = {}


def query_index(corpus: Corpus, query: Callable[[Index], _Answer]) -> _Answer:
    """Run a query on the up-to-date index of a corpus.

    Raises:
        ServiceError: the index cannot be read although it was just rebuilt.
    """
    failure: Exception | None = None
    for _ in range(_ATTEMPTS):
        with _lock:
            try:
                return query(_index(corpus))
            except AsapError:
                raise
            except Exception as error:
                _close_all()
                failure = error
    warn_of_store(f"the search index cannot be read ({type(failure).__name__}); the search runs in memory ({REPAIR})")
    with suppress(Exception), closing(open_in_memory(corpus, bundled_embedder())) as index:
        return query(index)
    raise _unusable(failure) from failure


def shared_documents(corpus: Corpus) -> list[StoredDocument]:
    """Documents that only the configured server holds; none without a server."""
    if not os.environ.get(SERVER):
        return []
    return [document for document in query_index(corpus, lambda index: index.lexical.everything()) if document.shared]


def synchronise(corpus: Corpus) -> None:
    """Upload local changes to a configured server now; without a server the next search picks them up."""
    if os.environ.get(SERVER):
        query_index(corpus, lambda index: None)


def rebuild(corpus: Corpus) -> int:
    """Rebuild the local index of a corpus; returns the number of documents.

    Raises:
        ServiceError: it cannot be written.
    """
    with _lock:
        _close_all()
        try:
            index = open_local(corpus, configured_embedder(), rebuild=True)
        except AsapError:
            raise
        except Exception as error:
            raise _unusable(error) from error
        count = len(index.lexical.keys())
        index.close()
    synchronise(corpus)
    return count


def remove_source(corpus: Corpus, source: str) -> int:
    """Delete a source from a configured server; returns the number of deleted documents."""
    url = os.environ.get(SERVER, "")
    if not url:
        return 0
    try:
        return remove_shared(url, corpus, configured_embedder(), source)
    except ServerDownError as error:
        _warn_down(url, error)
        return 0


def _index(corpus: Corpus) -> Index:
    embedder = configured_embedder()
    key = (str(store_folder()), collection_name(corpus, embedder))
    url = os.environ.get(SERVER, "")
    if url and time.monotonic() >= _down_until.get(url, 0.0):
        try:
            return _memoised((*key, url), corpus, lambda: open_server(url, corpus, embedder))
        except ServerDownError as error:
            _warn_down(url, error)
    return _local_index(key, corpus, embedder)


def _local_index(key: tuple[str, ...], corpus: Corpus, embedder: "Embedder") -> Index:
    """The local store; in memory, and with our own embedder, which costs nothing, while that cannot be used."""
    folder = key[0]
    if time.monotonic() >= _down_until.get(folder, 0.0):
        try:
            return _memoised(key, corpus, lambda: open_local(corpus, embedder))
        except BaseException as error:  # Chroma panics outside of Exception where a bit of its database is wrong
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            if isinstance(error, UsageError | ServiceError) and not isinstance(error, LockedError):
                raise  # of the embedder that the user asked for
            _down_until[folder] = time.monotonic() + RETRY_SECONDS
            if not isinstance(error, AsapError | OSError | sqlite3.Error):
                _close_all()
            reason = plain(getattr(error, "message", None) or f"{type(error).__name__}: {error}", 120)
            warn_of_store(f"{folder}: the search index cannot be used ({reason}); the search runs in memory ({REPAIR})")
    return _memoised((*key, "memory"), corpus, lambda: open_in_memory(corpus, bundled_embedder()))


def _memoised(key: tuple[str, ...], corpus: Corpus, opened: Callable[[], Index]) -> Index:
    known = _opened.get(key)
    if known is not None:
        with suppress(ServerDownError):
            if known.serves(corpus):
                return known
        _opened.pop(key).close()
    _opened[key] = opened()
    return _opened[key]


def _close_all() -> None:
    while _opened:
        _opened.popitem()[1].close()


def _unusable(error: Exception | None) -> ServiceError:
    reason = plain(f"{type(error).__name__}: {error}", 200)
    return ServiceError(f"the search index cannot be used: {reason}", where=str(store_folder()))


def _warn_down(url: str, error: Exception) -> None:
    _down_until[url] = time.monotonic() + RETRY_SECONDS
    reason = plain(str(error), 120)
    server = Address.parse(url).url
    warn_of_store(f"the Chroma server {server} cannot be used ({reason}); the local files are searched instead")


def open_in_memory(corpus: Corpus, embedder: Embedder) -> Index:
    """The index of a corpus as it is now."""
    documents, fingerprint = corpus.documents(), corpus.fingerprint()
    vectors = np.asarray(embedder.embed_documents(documents), dtype=np.float32)
    matrix = Matrix([document.key for document in documents], vectors)
    lexical = LexicalIndex.in_memory(documents, fingerprint)
    return Index(lexical, matrix.nearest, embedder, fingerprint, lambda wanted: wanted == fingerprint, lambda: None)
