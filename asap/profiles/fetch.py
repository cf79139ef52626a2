"""The facts of a profile, read once."""

from collections.abc import Callable
from pathlib import Path

from asap.core.errors import ProfileError
from asap.core.text import plain
from asap.profiles.locate import ProfileRun, locate
from asap.profiles.profile import Profile

_latest: dict[tuple[ProfileRun, tuple[tuple[int, int, int], ...]], Profile] = {}


def read_profile(path: str | Path, run: str | None = None, progress: Callable[[str], None] | None = None) -> Profile:
    """All facts of a run. Reading unchanged files again costs nothing.

    Args:
        path: a log directory, its ``plugins/profile``, a run folder in it, or one ``*.xplane.pb``.
        run: name of a run folder; default: the newest.
        progress: called with each stage as it begins.

    Raises:
        NotFoundError: the path or the run does not exist.
        ProfileError: there is no profile, or it cannot be read.
    """
    from asap.profiles.reading import read_run

    found = locate(path, run)
    try:
        key = (found, tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in map(Path.stat, found.files)))
        profile = _latest.get(key) or read_run(found, progress or (lambda stage: None))
    except OSError as error:
        raise ProfileError(f"cannot be read: {error.strerror or error}", where=plain(found.path)) from error
    _latest.clear()
    _latest[key] = profile
    return profile
