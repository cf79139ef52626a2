"""The configurations of one commit, laid out in a scratch folder where the readers find only what the commit holds.

A ``base_config`` is followed inside the commit: a path that leaves the repository, a symbolic link or a submodule is
refused before anything is read.
"""

from functools import lru_cache
from pathlib import Path, PurePosixPath

from asap.ci.git import Repository
from asap.core.errors import AsapError, ConfigError, NotFoundError
from asap.core.text import plain
from asap.experiments.documents import LARGEST_BYTES, read_document

BASE_CONFIG = "base_config"
_DEEPEST = 8
_LONGEST_REFERENCE = 250
_KEPT = 64
"""Files that are kept in memory, each of up to LARGEST_BYTES."""


class Revision:
    """One commit.

    Args:
        repository: where it lies.
        commit: its hash.
        scratch: an empty folder that belongs to this revision alone.
    """

    def __init__(self, repository: Repository, commit: str, scratch: Path):
        self.commit = commit
        self.tree = repository.tree(commit)
        self._blob = lru_cache(_KEPT)(repository.blob)
        self._scratch = scratch.resolve()
        self._laid: dict[str, Path] = {}

    def text(self, path: str) -> str | None:
        """A small text file; ``None`` if there is none here, or if it is no text."""
        entry = self.tree.get(path)
        if entry is None or not entry.is_file:
            return None
        content = self._blob(entry.object, LARGEST_BYTES)
        if len(content) > LARGEST_BYTES or b"\0" in content:
            return None
        return content.decode("utf-8-sig", errors="replace")

    def lay(self, path: str) -> Path:
        """A file as a path of the scratch folder.

        Raises:
            NotFoundError: the commit has no such file.
            ConfigError: it is a symbolic link or a submodule.
        """
        entry = self.tree.get(path)
        if entry is None:
            raise NotFoundError("no such file in this commit", where=shown(path))
        if not entry.is_file:
            raise ConfigError("is a symbolic link or a submodule, which is not followed", where=shown(path))
        if path not in self._laid:
            self._laid[path] = self._write(path, self._blob(entry.object, LARGEST_BYTES))
        return self._laid[path]

    def lay_with_bases(self, path: str) -> tuple[Path, tuple[str, ...]]:
        """A configuration with all that it includes; the file, and the paths of everything that was laid out.

        Raises:
            ConfigError: a ``base_config`` leaves the repository, or the file cannot be read.
        """
        target, closure = self.lay(path), [path]
        current = path
        for _ in range(_DEEPEST):
            base = self._base_of(current)
            if base is None or base in closure:
                break
            self.lay(base)
            closure.append(base)
            current = base
        return target, tuple(closure)

    def clean(self, error: AsapError) -> AsapError:
        """An error that names paths of the repository, not of the scratch folder."""
        prefix = f"{self._scratch}/"
        error.message = error.message.replace(prefix, "")
        error.where = error.where.replace(prefix, "") if error.where else None
        return error

    def _write(self, path: str, content: bytes) -> Path:
        target = self._scratch / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        except OSError as error:
            raise ConfigError(f"has a name that cannot be used: {error.strerror}", where=shown(path)) from error
        return target

    def _base_of(self, path: str) -> str | None:
        if PurePosixPath(path).suffix == ".json":
            return None
        document = read_document(self._laid[path])
        base = document.values.get(BASE_CONFIG)
        if not base:
            return None
        folders = [PurePosixPath(path).parent]
        folders += [parent for parent in PurePosixPath(path).parents if parent.name == "configs"]
        for folder in folders:
            found = normal(folder, str(base))
            if found is None:
                reason = f"{BASE_CONFIG} {plain(base, 80)} lies outside of the repository"
                raise ConfigError(reason, where=document.place(BASE_CONFIG))
            if found in self.tree:
                return found
        return None


def normal(folder: PurePosixPath, reference: str) -> str | None:
    """A reference from a folder as a path of the repository; ``None`` if it leaves it or is no path."""
    if reference.startswith("/") or "\0" in reference or len(reference) > _LONGEST_REFERENCE:
        return None
    parts: list[str] = []
    for part in (folder / reference).parts:
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def shown(path: str) -> str:
    """A path as one harmless line."""
    return plain(path.encode(errors="backslashreplace").decode(), 200)
