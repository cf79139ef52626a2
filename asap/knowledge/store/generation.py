"""Generations of the local store: each a folder that is written once, with a manifest, and replaced as a whole.

A reader never sees a half-written store, and damage is found before Chroma opens it, which matters because a truncated
HNSW header crashes the process, and a flipped bit in ``chroma.sqlite3`` ends it with a panic.
"""

import json
import shutil
import sqlite3
import uuid
import zlib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from asap.core.files import PRIVATE, private_folder, write_atomically

_CURRENT = "current"
_MANIFEST, _DATABASE = "manifest.json", "chroma.sqlite3"
_KEPT = 2  # generations on disk: readers may still have the one before


def in_use(root: Path) -> Path | None:
    """The generation in use, if there is one."""
    try:
        folder = root / (root / _CURRENT).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    return folder if folder.parent == root and folder.is_dir() else None


def create(root: Path, previous: Path | None) -> Path:
    """A new folder to write to: a copy of the previous generation, or empty."""
    folder = root / uuid.uuid4().hex
    if previous is None:
        private_folder(folder)
    else:
        shutil.copytree(previous, folder)
    return folder


def write_manifest(folder: Path, collections: Mapping[str, str]) -> None:
    """Record what the folder holds: each collection with its stamp, and each file with its size and checksum.

    Chroma's files become readable to their owner alone.
    """
    for path in folder.rglob("*"):
        path.chmod(PRIVATE if path.is_dir() else 0o600)
    manifest = {"collections": dict(collections), "files": _inventory(folder)}
    write_atomically(folder / _MANIFEST, json.dumps(manifest, indent=1))


def publish(root: Path, folder: Path) -> None:
    """Put a finished folder into use, and delete all others but its predecessor, which may still be read."""
    write_atomically(root / _CURRENT, folder.name)
    others = [path for path in root.iterdir() if (path / _MANIFEST).is_file() and path != folder]
    others.sort(key=lambda path: (path / _MANIFEST).stat().st_mtime, reverse=True)
    for path in others[_KEPT - 1 :]:
        shutil.rmtree(path, ignore_errors=True)


def discard_unfinished(root: Path) -> None:
    """Remove what a killed writer left behind. The caller holds the lock."""
    for path in root.iterdir():
        if path.is_dir() and len(path.name) == len(uuid.uuid4().hex) and not (path / _MANIFEST).is_file():
            shutil.rmtree(path, ignore_errors=True)


def collections(folder: Path) -> dict[str, str]:
    """The stamps of the collections in a generation; empty if its manifest cannot be read."""
    return dict(_manifest(folder).get("collections", {}))


def damage(folder: Path) -> str | None:
    """What is wrong with the files of a generation, in a few words; ``None`` if they match the manifest."""
    recorded = _manifest(folder).get("files")
    if not recorded:
        return f"{_MANIFEST} cannot be read"
    found = _inventory(folder)
    for name, entry in recorded.items():
        if name not in found:
            return f"{name} is missing"
        if found[name] != entry:
            return f"{name} has changed"
    return _damage_of_database(folder / _DATABASE)


def _damage_of_database(path: Path) -> str | None:
    """What SQLite finds wrong with Chroma's database, which Chroma writes to while it reads: no checksum holds."""
    if not path.is_file():
        return None
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            (said,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        said = str(error)
    return None if said == "ok" else f"{path.name} is damaged"


def _manifest(folder: Path) -> dict:
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _inventory(folder: Path) -> dict[str, list[int]]:
    inventory: dict[str, list[int]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name == _DATABASE:
            inventory[path.relative_to(folder).as_posix()] = []
        elif path.is_file() and path.name != _MANIFEST:
            inventory[path.relative_to(folder).as_posix()] = [path.stat().st_size, zlib.crc32(path.read_bytes())]
    return inventory
