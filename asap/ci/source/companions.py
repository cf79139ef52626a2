"""Files of a commit that reading a configuration needs: those that it names, a model's, and presets of Primus."""

import re
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from asap.core.text import plain

_NAMED = re.compile(r"[\w./-]{1,200}\.(?:json|ya?ml|sh)\b", re.ASCII)
_PRIMUS = re.compile(r"^[ \t]+framework[ \t]*:", re.MULTILINE)
_PRESETS = PurePosixPath("primus/configs")
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
    if _PRIMUS.search(text):
        found += _presets(folders, tree)
    return [place for place in dict.fromkeys(found) if place != path]


def _nearest(name: str, folders: Collection[PurePosixPath], tree: Collection[str]) -> str | None:
    """Where a name lies, from the folder of the configuration upwards, as it stands or by its last part."""
    references = dict.fromkeys((name, PurePosixPath(name).name))
    places = (resolve_reference(folder, reference) for folder in folders for reference in references)
    return next((place for place in places if place in tree), None)


def _presets(folders: Collection[PurePosixPath], tree: Collection[str]) -> Iterator[str]:
    for folder in folders:
        inside = [place for place in tree if PurePosixPath(place).is_relative_to(folder / _PRESETS)]
        if inside:
            yield from (place for place in inside if place.endswith((".yaml", ".yml")))
            return


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
