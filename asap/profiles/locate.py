"""Find the profile behind a path, one run and the files of all its hosts, and read it once."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from asap.core.errors import NotFoundError, ProfileError
from asap.core.files import exists, user_path
from asap.core.text import plain
from asap.profiles.profile import Profile, ProfileRun

SUFFIX = ".xplane.pb"
EXPECTED = f"give a log directory, plugins/profile, a plugins/profile/<run>/ folder or one *{SUFFIX}"
_TIMESTAMP = re.compile(r"\d{4}(_\d\d){5}")


def locate(path: str | Path, run: str | None = None) -> ProfileRun:
    """The run that a path means; of several the newest, unless ``run`` names one.

    Args:
        path: a log directory, its ``plugins/profile``, a run folder in it, or one ``*.xplane.pb``.
        run: name of a run folder.

    Raises:
        NotFoundError: the path or the run does not exist.
        ProfileError: there is no profile in it, or a file of it is empty or cannot be read.
    """
    path = user_path(path)
    where = plain(path)
    try:
        if not exists(path):
            raise NotFoundError("does not exist", where=where, hint=EXPECTED)
        if path.is_dir():
            return _in_directory(path, run, where)
        if not path.name.endswith(SUFFIX):
            raise ProfileError(f"is not a *{SUFFIX} file", where=where, hint=EXPECTED)
        return _checked(ProfileRun(path, (path,)))
    except OSError as error:
        raise ProfileError(f"cannot be read: {error.strerror or error}", where=where) from error


def _in_directory(path: Path, wanted: str | None, where: str) -> ProfileRun:
    if files := _profiles_in(path):
        return _checked(ProfileRun(path, files))
    for folder in (path / "plugins" / "profile", path / "profile", path):
        runs = {entry.name: found for entry in _folders_in(folder) if (found := _profiles_in(entry))}
        if runs:
            return _choose(folder, runs, wanted)
    raise ProfileError("holds no profile", where=where, hint=f"expected plugins/profile/<run>/*{SUFFIX} in it")


def _choose(folder: Path, runs: Mapping[str, tuple[Path, ...]], wanted: str | None) -> ProfileRun:
    newest_first = sorted(runs, key=lambda name: _age_key(name, runs), reverse=True)
    listed = plain(", ".join(newest_first), 200)
    if wanted is not None and wanted not in runs:
        raise NotFoundError(f"has no run {plain(wanted, 60)!r}", where=plain(folder), hint=f"runs: {listed}")
    name = wanted or newest_first[0]
    warnings = ()
    if wanted is None and len(runs) > 1:
        others = "another run" if len(runs) == 2 else f"{len(runs) - 1} other runs"
        warnings = (f"The newest run, {plain(name, 60)}, is read; {others} in {plain(folder)} left aside.",)
    return _checked(ProfileRun(folder / name, runs[name], warnings))


def _age_key(name: str, runs: Mapping[str, tuple[Path, ...]]) -> tuple[str, float, str]:
    """By the time in the names where all carry one (a copy changes the files' times), else by the files' times."""
    stamped = all(_TIMESTAMP.match(other) for other in runs)
    return (name if stamped else "", max(file.stat().st_mtime for file in runs[name]), name)


def _checked(run: ProfileRun) -> ProfileRun:
    for file in run.files:
        if not file.is_file():
            raise ProfileError("is not a regular file", where=plain(file))
        if file.stat().st_size == 0:
            raise ProfileError("is empty", where=plain(file), hint="the recording or the copy did not finish")
    return run


def _profiles_in(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(entry for entry in folder.iterdir() if entry.name.endswith(SUFFIX)))


def _folders_in(folder: Path) -> list[Path]:
    return [entry for entry in folder.iterdir() if entry.is_dir()] if folder.is_dir() else []


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
