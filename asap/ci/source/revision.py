"""The configurations of one commit, checked out into a scratch folder that holds nothing else.

A ``base_config`` is followed inside the commit: a path that leaves the repository, a symbolic link or a submodule is
refused before anything is read.
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath

from asap.ci.source.git import Repository
from asap.core.errors import AsapError, ConfigError, NotFoundError
from asap.core.text import plain
from asap.experiments.files.documents import LARGEST_BYTES, Document, read_document

_NAMED = re.compile(r"[\w./-]{1,200}\.(?:json|ya?ml|toml|sh)\b", re.ASCII)
_MODEL = "config.json"
_MOST = 64
"""Files that are named, of one configuration."""


def companions(path: str, text: str, tree: Collection[str]) -> list[str]:
    """Paths of the repository, without the configuration itself.

    Args:
        path: of the configuration.
        text: of it.
        tree: all paths of the commit.
    """
    folders = PurePosixPath(path).parents
    names = [*dict.fromkeys(_NAMED.findall(text))][:_MOST]
    found = [place for name in names if (place := _nearest(name, folders, tree))]
    if path.endswith(".json") and (model := resolve_reference(folders[0], _MODEL)) in tree:
        found.append(str(model))
    return [place for place in dict.fromkeys(found) if place != path]


def _nearest(name: str, folders: Collection[PurePosixPath], tree: Collection[str]) -> str | None:
    """Where a name lies, from the folder of the configuration upwards, as it stands or by its last part."""
    references = dict.fromkeys((name, PurePosixPath(name).name))
    places = (resolve_reference(folder, reference) for folder in folders for reference in references)
    return next((place for place in places if place in tree), None)


_LONGEST_REFERENCE = 250


def resolve_reference(folder: PurePosixPath, reference: str) -> str | None:
    """A relative reference as a repository path; ``None`` if it leaves the repository or is not a path."""
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


def printable_path(path: str) -> str:
    """A path as one line that is safe to print."""
    return plain(path.encode(errors="backslashreplace").decode(), 200)


BASE_CONFIG = "base_config"
_MODELS, _RULES = "models", "custom_mesh_and_rule"
_DEEPEST = 8
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
        self._checked_out: dict[str, Path] = {}

    def text(self, path: str) -> str | None:
        """A small text file; ``None`` if it is missing, too large or binary."""
        entry = self.tree.get(path)
        if entry is None or not entry.is_file:
            return None
        content = self._blob(entry.object, LARGEST_BYTES)
        if len(content) > LARGEST_BYTES or b"\0" in content:
            return None
        return content.decode("utf-8-sig", errors="replace")

    def check_out(self, path: str) -> Path:
        """Write a file to the scratch folder; its path there.

        Raises:
            NotFoundError: the commit has no such file.
            ConfigError: it is a symbolic link or a submodule.
        """
        entry = self.tree.get(path)
        if entry is None:
            raise NotFoundError("no such file in this commit", where=printable_path(path))
        if not entry.is_file:
            raise ConfigError("is a symbolic link or a submodule, which is not followed", where=printable_path(path))
        if path not in self._checked_out:
            self._checked_out[path] = self._write(path, self._blob(entry.object, LARGEST_BYTES))
        return self._checked_out[path]

    def check_out_with_bases(self, path: str, overrides: Sequence[str] = ()) -> tuple[Path, tuple[str, ...]]:
        """Check out a configuration and every file it includes; its path, and the repository paths of all of them.

        Files that it names, and that of the model that it or an override names, are included where the commit has them.

        Raises:
            ConfigError: a ``base_config`` leaves the repository, or the file cannot be read.
        """
        target, included = self.check_out(path), [path]
        current = path
        for _ in range(_DEEPEST):
            base = self._base_of(current)
            if base is None or base in included:
                break
            self.check_out(base)
            included.append(base)
            current = base
        named = [document.values for one in included if (document := self._document(one))]
        beside = [one for one in companions(path, self.text(path) or "", self.tree) if self.tree[one].is_file]
        for companion in beside:
            self.check_out(companion)
        for folder, key in ((_MODELS, "model_name"), (_RULES, _RULES)):
            said = [override.partition("=")[2] for override in overrides if override.startswith(f"{key}=")]
            names = [*said, *(str(values[key]) for values in named if key in values)]
            included += self._beside(path, folder, names[:1])
        return target, tuple(dict.fromkeys((*included, *beside)))

    def _beside(self, path: str, folder: str, names: Sequence[str]) -> list[str]:
        """Check out a file of a folder beside a configuration, beside its folder, or in a folder ``configs`` above."""
        parents = PurePosixPath(path).parents
        places = [*parents[:2], *(parent for parent in parents if parent.name == "configs")]
        candidates = (resolve_reference(place, f"{folder}/{name}.yml") for name in names for place in places)
        found = next((one for one in candidates if one in self.tree), None)
        if found is None:
            return []
        self.check_out(found)
        return [found]

    def _document(self, path: str) -> Document | None:
        has_bases = PurePosixPath(path).suffix in (".yml", ".yaml")
        return read_document(self._checked_out[path]) if has_bases else None

    def relativize_paths(self, error: AsapError) -> AsapError:
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
            raise ConfigError(
                f"cannot be checked out under this name: {error.strerror}", where=printable_path(path)
            ) from error
        return target

    def _base_of(self, path: str) -> str | None:
        document = self._document(path)
        base = document.values.get(BASE_CONFIG) if document else None
        if document is None or not base:
            return None
        folders = [PurePosixPath(path).parent]
        folders += [parent for parent in PurePosixPath(path).parents if parent.name == "configs"]
        for folder in folders:
            found = resolve_reference(folder, str(base))
            if found is None:
                reason = f"{BASE_CONFIG} {plain(base, 80)} lies outside the repository"
                raise ConfigError(reason, where=document.place(BASE_CONFIG))
            if found in self.tree:
                return found
        return None
