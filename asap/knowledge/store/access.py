"""Access to the store: the server in ``ASAP_CHROMA_URL`` if it is up, else the local one.

If the server cannot be used, a :class:`~asap.knowledge.paths.StoreWarning` says so, and it is tried again later.
"""

import os
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from asap.core.errors import AsapError, ServiceError
from asap.core.text import plain
from asap.knowledge.document import Corpus
from asap.knowledge.index.embedders import configured_embedder
from asap.knowledge.index.hybrid import Index
from asap.knowledge.index.lexical import StoredDocument
from asap.knowledge.index.vectors import collection_name
from asap.knowledge.paths import SERVER, StoreWarning, store_folder
from asap.knowledge.store.local import open_local
from asap.knowledge.store.server import Address, ServerDownError, open_server, remove_shared

RETRY_SECONDS = 30.0
_ATTEMPTS = 2
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
    return _memoised(key, corpus, lambda: open_local(corpus, embedder))


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
    message = (
        f"the Chroma server {Address.parse(url).url} cannot be used ({reason}); the local files are searched instead"
    )
    warnings.warn(message, StoreWarning, stacklevel=2)
