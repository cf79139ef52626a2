"""Where data is stored, and atomic writes."""

import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from asap.core.errors import BadInputError, NotFoundError

_PACKAGE = Path(__file__).resolve().parent.parent
NO_FOLDER = Path(os.devnull) / "ASAP_HOME"
"""Where nothing is, and nothing can be written."""
PRIVATE = 0o700
"""Mode of the folders that ASAP makes for itself; its files are 0600."""

SCRATCH = "asap-scratch-"
SCRATCH_KEPT_S = 600.0
"""Age below which a folder is left alone, whether locked or not yet."""


def home() -> Path:
    """The user's folder: ``ASAP_HOME``, or the platform's data directory.

    A path that no file system can have becomes one that never exists: it reads as empty, and refuses every write.
    """
    configured = os.environ.get("ASAP_HOME")
    if not configured:
        from platformdirs import user_data_path

        return user_data_path("asap", appauthor=False)
    folder = user_path(configured)
    try:
        folder.lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return NO_FOLDER
    return folder


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


def private_folder(folder: Path) -> Path:
    """Make a folder that only its owner reads, and its parents.

    Raises:
        OSError: it cannot be made.
    """
    for each in reversed((folder, *folder.parents)):
        if not each.exists():
            each.mkdir(mode=PRIVATE, exist_ok=True)
    return folder


def private_file(path: Path) -> Path:
    """Make sure that a file is there, which only its owner reads and writes, before others write to it.

    Raises:
        OSError: it cannot be made.
    """
    private_folder(path.parent)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
    return path


@contextmanager
def scratch_folder(kind: str) -> Iterator[Path]:
    """A temporary folder during the context; one that a killed process left is removed by a later call.

    Whoever uses one holds its lock, which the system releases with the process.
    """
    with tempfile.TemporaryDirectory(prefix=f"{SCRATCH}{kind}-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        handle = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH)
            _sweep(folder.parent)
            yield folder
        finally:
            os.close(handle)


def _sweep(place: Path) -> None:
    for folder in place.glob(f"{SCRATCH}*"):
        with suppress(OSError):
            found = folder.lstat()
            if found.st_uid != os.getuid() or time.time() - found.st_mtime < SCRATCH_KEPT_S:
                continue
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


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
        private_folder(path.parent)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
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
    """Write a file that the user asked for by name: whole or not at all, unless it is a device or a pipe.

    Raises:
        BadInputError: it cannot be written.
    """
    data = text.encode("utf-8", "backslashreplace")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        target = path.resolve()
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise BadInputError(f"cannot be written: {error.strerror}", where=str(path)) from error


def unwritable(folder: Path, error: OSError) -> BadInputError:
    """The error for a folder that cannot be written."""
    reason = error.strerror or str(error)
    message = f"cannot be written: {reason}"
    return BadInputError(message, where=str(folder), hint="set ASAP_HOME to a writable folder")


def read_json_lines(path: Path) -> Iterator[tuple[str, str]]:
    r"""The lines that are not blank, each with its place, ``file:line``.

    Only ``\n`` ends a line: a JSON string may hold every other line separator of Unicode (RFC 8259, section 7).

    Raises:
        NotFoundError: there is no such file.
        BadInputError: the file cannot be read as text.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise NotFoundError("there is no such file", where=str(path)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError("cannot be read as text", where=str(path)) from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"{path}:{number}", line
