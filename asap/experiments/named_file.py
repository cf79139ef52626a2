"""A file that another one names, by a path that may begin at the root of its repository."""

from pathlib import Path

from asap.core.files import is_file


def find_named(named: str, path: Path) -> Path | None:
    """The file of that name from the folder of ``path`` or one above it; ``None`` if it is not there."""
    below = named.lstrip("/")
    folders = (path.parent, *path.absolute().parents)
    places = (folder / name for folder in folders for name in (below, Path(named).name))
    return next((place for place in places if is_file(place)), None)
