"""The folder of the store, and its lock."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asap.core.errors import ServiceError
from asap.core.files import home, unwritable

SERVER = "ASAP_CHROMA_URL"
"""Variable with the URL of a shared Chroma server."""
LOCK_SECONDS = 300


class StoreWarning(UserWarning):
    """A problem of the store that does not affect the result."""


def store_folder() -> Path:
    """The folder of the store."""
    return home() / "chroma"


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """One process at a time opens or writes the store.

    Raises:
        ServiceError: another process holds it for too long.
        BadInputError: the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / ".lock", timeout=LOCK_SECONDS):
            yield
    except Timeout as error:
        raise ServiceError("another process is writing the store", where=str(root), hint="try again") from error
    except OSError as error:
        raise unwritable(root, error) from error
