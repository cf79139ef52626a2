"""Files on object stores (``gs://``, ``s3://``, whatever fsspec knows), copied to the user's folder once."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from asap.core.errors import AsapError, NotFoundError, ServiceError, UsageError, extra_hint
from asap.core.files import home, private_file, private_folder
from asap.core.secrets import redacted
from asap.core.text import plain

EXTRAS = {"gs": "gs", "gcs": "gs", "s3": "s3", "s3a": "s3"}
"""Scheme → the extra of ASAP that brings its file system."""
_ADDRESS = re.compile(r"([a-z][a-z0-9]+)://.+")


def is_remote(path: object) -> bool:
    """Whether a path is an address: ``gs://bucket/run``."""
    return _ADDRESS.fullmatch(str(path)) is not None


def local_copy(address: str, suffix: str) -> Path:
    """A copy of one file, or of a folder's files with a suffix; what did not change is not copied again.

    Of several runs (folders that hold such files) only the one whose name comes last is copied: names are timestamps.

    Args:
        address: of a file or a folder.
        suffix: of the files that are wanted.

    Raises:
        UsageError: the file system is not installed, or there is none of that name.
        NotFoundError: there is no such file.
        ServiceError: the store cannot be reached, or refuses.
    """
    with _opened(address) as (system, root):
        names = [root] if system.isfile(root) else _newest(system, root, suffix)
        if not names:
            hint = "only profiles are read from an address: download anything else, and give its path"
            raise NotFoundError(f"holds no *{suffix}", where=plain(redacted(address), 200), hint=hint)
        return _copied(system, names, single=names == [root])


def local_tree(address: str, parts: tuple[str, ...]) -> Path:
    """A copy of a folder, or of one file: the files whose name contains one of ``parts``, in their subfolders.

    Raises like :func:`local_copy`.
    """
    with _opened(address) as (system, root):
        if system.isfile(root):
            names, root = [root], root.rpartition("/")[0]
        else:
            names = [name for name in system.find(root) if any(part in name.rpartition("/")[2] for part in parts)]
        if not names:
            raise NotFoundError(f"holds no file with {' or '.join(parts)}", where=plain(redacted(address), 200))
        folder = _cache(system, names)
        for name in names:
            relative = PurePosixPath(name).relative_to(PurePosixPath(root))
            if ".." not in relative.parts:
                _fetch(system, name, folder / relative)
        return folder


@contextmanager
def _opened(address: str) -> Iterator[tuple[Any, str]]:
    import fsspec

    scheme, where = address.partition("://")[0], plain(redacted(address), 200)
    try:
        yield fsspec.core.url_to_fs(address)
    except AsapError:
        raise
    except (ImportError, ValueError) as error:
        hint = extra_hint(EXTRAS[scheme]) if scheme in EXTRAS else "gs:// and s3:// are known"
        raise UsageError(f"no file system for {scheme}:// is installed", where=where, hint=hint) from error
    except FileNotFoundError as error:
        raise NotFoundError("does not exist", where=where) from error
    except Exception as error:  # each file system has exceptions of its own
        raise ServiceError(f"{type(error).__name__}: {plain(redacted(str(error)), 200)}", where=where) from error


def _newest(system: Any, root: str, suffix: str) -> list[str]:
    names = [name for name in system.find(root) if name.endswith(suffix)]
    newest = max((name.rpartition("/")[0] for name in names), default="")
    return [name for name in names if name.rpartition("/")[0] == newest]


def _copied(system: Any, names: list[str], single: bool) -> Path:
    cache = _cache(system, names)
    run = cache / "plugins" / "profile" / Path(names[0]).parent.name
    for name in names:
        _fetch(system, name, run / Path(name).name)
    return run / Path(names[0]).name if single else cache


def _cache(system: Any, names: list[str]) -> Path:
    """The folder of these files as they are now: when one changes, so does the folder."""
    state = "\n".join(f"{name} {system.ukey(name)}" for name in names)
    return home() / "remote" / hashlib.sha256(state.encode()).hexdigest()[:16]


def _fetch(system: Any, name: str, target: Path) -> None:
    if target.exists():
        return
    private_folder(target.parent)
    partial = private_file(target.with_name(f".{target.name}.part"))
    system.get_file(name, str(partial))
    partial.replace(target)
