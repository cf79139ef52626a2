"""A file that another one names: one that it brings along, or one by a path that may begin at the root of its
repository."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from asap.core.errors import ConfigError
from asap.core.files import is_file
from asap.core.text import plain
from asap.experiments.files.documents import Document, parse_document, read_text

_BELOW_VARIABLE = re.compile(r"^(?:\$\{?\w+\}?|\$\([^()]*\)|`[^`]*`)/", re.ASCII)
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)(?![\w\[])|(?:\$\(\(|\[)\s*([A-Za-z_]\w*)", re.ASCII)
_DEEPEST = 12
Brought = Mapping[str, str]
"""Texts by the path that a program finds them under: files of a ConfigMap, or those that a script writes."""


@dataclass(frozen=True)
class NamedFile:
    """Its text, and what to call it in errors and provenance."""

    path: Path
    text: str

    def document(self) -> Document:
        """The mapping that it holds; raises like :func:`asap.experiments.files.documents.read_document`."""
        return parse_document(self.text, self.path)


def find_named(named: str, path: Path, brought: Brought | None = None) -> NamedFile | None:
    """The file of that name among those that are brought along, else in the folder of ``path`` or one above it, by as
    much of its path as leads to a file there.

    Raises:
        ConfigError: it is there, and too large, not text, or cannot be read.
    """
    if (text := find_brought(named, brought or {})) is not None:
        return NamedFile(path / PurePosixPath(named).name, text)
    parts = PurePosixPath(named.lstrip("/")).parts[-_DEEPEST:]
    folders = (path.parent, *path.absolute().parents)
    places = (folder / PurePosixPath(*parts[first:]) for first in range(len(parts)) for folder in folders)
    found = next((place for place in places if is_file(place)), None)
    return None if found is None else NamedFile(found, read_text(found))


def missing(says: str, named: str, path: Path, hint: str) -> ConfigError:
    """That a file is not there; one whose name is a variable's is asked for by that variable.

    Args:
        says: what a script does with it: ``starts torchtitan with``.
        named: the file, as far as it is known.
        path: the script.
        hint: what to do where it is not there.
    """
    shown = f"{says} {plain(named, 80)}"
    if (variable := open_variable(named)) is None:
        return ConfigError(f"{shown}, which is not there", where=str(path), hint=hint)
    said = f"add {plain(variable, 40)}=…, or give the file as --config"
    return ConfigError(f"{shown}, which a variable names", where=str(path), hint=said)


def open_variable(text: str) -> str | None:
    """The variable that decides a text, of ``${NAMES[$PLACE]}`` the place; ``None`` where none does."""
    found = _VARIABLE.search(text)
    return (found[1] or found[2]) if found else None


def below_variable(named: str) -> str:
    """What follows a variable or a substitution that a path begins with: ``$REPO/configs/run.yaml``."""
    return _BELOW_VARIABLE.sub("", named)


def find_brought(named: str, brought: Brought) -> str | None:
    """The text under that path, or under the only one with the same name; ``None`` if there is none."""
    if named in brought:
        return brought[named]
    name = PurePosixPath(named).name
    same = [text for path, text in brought.items() if PurePosixPath(path).name == name]
    return same[0] if len(same) == 1 else None
