"""Files on object stores (``gs://``, ``s3://``, whatever fsspec knows), copied to the user's folder once."""

import hashlib
import re
from pathlib import Path
from typing import Any

from asap.core.errors import AsapError, NotFoundError, ServiceError, UsageError
from asap.core.files import home
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
    import fsspec

    scheme, where = address.partition("://")[0], plain(redacted(address), 200)
    try:
        system, root = fsspec.core.url_to_fs(address)
        names = [root] if system.isfile(root) else _newest(system, root, suffix)
        if not names:
            raise NotFoundError(f"holds no *{suffix}", where=where)
        return _copied(system, names, single=names == [root])
    except AsapError:
        raise
    except (ImportError, ValueError) as error:
        hint = f"pip install 'asap[{EXTRAS[scheme]}]'" if scheme in EXTRAS else "gs:// and s3:// are known"
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
    state = "\n".join(f"{name} {system.ukey(name)}" for name in names)
    cache = home() / "remote" / hashlib.sha256(state.encode()).hexdigest()[:16]
    run = cache / "plugins" / "profile" / Path(names[0]).parent.name
    run.mkdir(parents=True, exist_ok=True)
    for name in names:
        target = run / Path(name).name
        if not target.exists():
            partial = target.with_name(f".{target.name}.part")
            system.get_file(name, str(partial))
            partial.replace(target)
    return run / Path(names[0]).name if single else cache
