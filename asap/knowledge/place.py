"""Where the store lies, and one process at a time in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asap.core.errors import ServiceError
from asap.core.files import home, unwritable

SERVER = "ASAP_CHROMA_URL"
"""Names the server of a team, if it has one."""
LOCK_SECONDS = 300


class StoreWarning(UserWarning):
    """Something about the store that the user should hear, although the answer is right."""


def store_root() -> Path:
    """Where the store lies."""
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
