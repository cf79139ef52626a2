"""An import path on which this package is found without anything that is installed beside it."""

import os
from pathlib import Path

import asap


def package_path(folder: Path) -> str:
    """A ``PYTHONPATH`` that starts with a new folder holding only a link to this package."""
    alone = folder / "path"
    alone.mkdir()
    (alone / "asap").symlink_to(Path(asap.__file__).resolve().parent, target_is_directory=True)
    return os.pathsep.join(part for part in (str(alone), os.environ.get("PYTHONPATH", "")) if part)
