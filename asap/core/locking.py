"""One process at a time writes a folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asap.core.errors import ServiceError
from asap.core.files import private_folder, unwritable

LOCK_TIMEOUT_S = 30.0


class LockedError(ServiceError):
    """Another process holds the lock for too long."""


@contextmanager
def locked(folder: Path, content: str, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold the lock of a folder, which is made where it is missing.

    Args:
        folder: the lock is its file ``.lock``.
        content: what the folder holds, for the message: ``the history``.
        timeout_s: how long to wait for another process.

    Raises:
        LockedError: another process holds the lock for too long.
        BadInputError: the folder cannot be written, before or under the lock.
    """
    from filelock import FileLock, Timeout

    try:
        private_folder(folder)
        with FileLock(folder / ".lock", timeout=timeout_s, mode=0o600):
            yield
    except Timeout as error:
        raise LockedError(f"another process is writing {content}", where=str(folder), hint="try again") from error
    except OSError as error:
        raise unwritable(folder, error) from error
