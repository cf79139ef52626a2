"""Which store answers: the team's server if ``ASAP_CHROMA_URL`` names one that is up, else the local one.

A server that cannot be used is said aloud (:class:`~asap.knowledge.place.StoreWarning`) and tried again later.
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
from asap.knowledge.document import Shelf
from asap.knowledge.embedders import current_embedder
from asap.knowledge.index import Index
from asap.knowledge.lexical import Stored
from asap.knowledge.local import open_local
from asap.knowledge.place import SERVER, StoreWarning, store_root
from asap.knowledge.server import Address, ServerDownError, open_server, remove_shared
from asap.knowledge.vectors import collection_name

RETRY_SECONDS = 30.0
_ATTEMPTS = 2
_Answer = TypeVar("_Answer")

_lock = threading.RLock()
_opened: dict[tuple[str, ...], Index] = {}
_down_until: dict[str, float] = {}


def ask(shelf: Shelf, question: Callable[[Index], _Answer]) -> _Answer:
    """Put a question to the index of a shelf as its files, or the server, are at this moment.

    Raises:
        ServiceError: the index cannot be read although it was just rebuilt.
    """
    failure: Exception | None = None
    for _ in range(_ATTEMPTS):
        with _lock:
            try:
                return question(_index(shelf))
            except AsapError:
                raise
            except Exception as error:
                _close_all()
                failure = error
    raise _unusable(failure) from failure


def shared(shelf: Shelf) -> list[Stored]:
    """What only a configured server holds; nothing without one."""
    if not os.environ.get(SERVER):
        return []
    return [document for document in ask(shelf, lambda index: index.lexical.everything()) if document.shared]


def synchronise(shelf: Shelf) -> None:
    """Let a configured server know at once what changed here; without a server the next search will see it."""
    if os.environ.get(SERVER):
        ask(shelf, lambda index: None)


def rebuild(shelf: Shelf) -> int:
    """Write the local index of a shelf anew; how many documents it holds.

    Raises:
        ServiceError: it cannot be written.
    """
    with _lock:
        _close_all()
        try:
            index = open_local(shelf, current_embedder(), afresh=True)
        except AsapError:
            raise
        except Exception as error:
            raise _unusable(error) from error
        count = len(index.lexical.keys())
        index.close()
    synchronise(shelf)
    return count


def remove_source(shelf: Shelf, source: str) -> int:
    """Delete a source from a configured server; how many documents it had there."""
    url = os.environ.get(SERVER, "")
    if not url:
        return 0
    try:
        return remove_shared(url, shelf, current_embedder(), source)
    except ServerDownError as error:
        _say_down(url, error)
        return 0


def _index(shelf: Shelf) -> Index:
    embedder = current_embedder()
    key = (str(store_root()), collection_name(shelf, embedder))
    url = os.environ.get(SERVER, "")
    if url and time.monotonic() >= _down_until.get(url, 0.0):
        try:
            return _memoised((*key, url), shelf, lambda: open_server(url, shelf, embedder))
        except ServerDownError as error:
            _say_down(url, error)
    return _memoised(key, shelf, lambda: open_local(shelf, embedder))


def _memoised(key: tuple[str, ...], shelf: Shelf, opened: Callable[[], Index]) -> Index:
    known = _opened.get(key)
    if known is not None:
        with suppress(ServerDownError):
            if known.serves(shelf):
                return known
        _opened.pop(key).close()
    _opened[key] = opened()
    return _opened[key]


def _close_all() -> None:
    while _opened:
        _opened.popitem()[1].close()


def _unusable(error: Exception | None) -> ServiceError:
    reason = plain(f"{type(error).__name__}: {error}", 200)
    return ServiceError(f"the search index cannot be used: {reason}", where=str(store_root()))


def _say_down(url: str, error: Exception) -> None:
    _down_until[url] = time.monotonic() + RETRY_SECONDS
    reason = plain(str(error), 120)
    message = (
        f"the Chroma server {Address.parse(url).url} cannot be used ({reason}); the local files are searched instead"
    )
    warnings.warn(message, StoreWarning, stacklevel=2)
