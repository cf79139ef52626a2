"""Where data is stored, and atomic writes."""

import errno
import os
import tempfile
from pathlib import Path

from asap.core.errors import BadInputError

_PACKAGE = Path(__file__).resolve().parent.parent


def home() -> Path:
    """The user's folder: ``ASAP_HOME``, or the platform's data directory."""
    configured = os.environ.get("ASAP_HOME")
    if configured:
        return Path(configured).expanduser()
    from platformdirs import user_data_path

    return user_data_path("asap", appauthor=False)


def data_folder(name: str) -> Path:
    """``prompts``, ``knowledge`` or ``history_db``: in the installed package, else in the checkout."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def user_path(text: str | Path) -> Path:
    """A path that somebody wrote; ``~`` is expanded where it is somebody's home."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def exists(path: Path) -> bool:
    """Whether a path that somebody wrote leads to something; a name that no file can have leads to nothing.

    Raises:
        BadInputError: it may not be looked at.
    """
    try:
        return path.exists()
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno != errno.ENAMETOOLONG:
            raise BadInputError(f"cannot be read: {error.strerror}", where=str(path)) from error
        return False


def is_file(path: Path) -> bool:
    """Whether a path that somebody wrote leads to a file; raises like :func:`exists`."""
    return exists(path) and path.is_file()


def write_atomically(path: Path, text: str) -> None:
    """Write a whole file or nothing: temporary file, fsync, rename.

    Raises:
        BadInputError: the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise unwritable(path.parent, error) from error


def write_output(path: Path, text: str) -> None:
    """Write a file that the user asked for by name.

    Raises:
        BadInputError: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"cannot be written: {error.strerror}", where=str(path)) from error


def unwritable(folder: Path, error: OSError) -> BadInputError:
    """The error for a folder that cannot be written."""
    reason = error.strerror or str(error)
    message = f"cannot be written: {reason}"
    return BadInputError(message, where=str(folder), hint="set ASAP_HOME to a writable folder")
