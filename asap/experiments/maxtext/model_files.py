"""The file of a named model, ``models/<model_name>.yml``, where MaxText's pyconfig.py looks for it."""

import re
from pathlib import Path

_INSTRUCT = "-Instruct"
_NAME = re.compile(r"[\w.-]{1,100}", re.ASCII)


def model_name_of(value: object) -> str | None:
    """The model whose file is meant; ``None`` for ``default``. An instruct model has the shapes of its base."""
    name = str(value or "").replace(_INSTRUCT, "")
    return None if name in ("", "default", "None", "none") else name


def find_model_file(config: Path, name: str | None) -> Path | None:
    """``models/<name>.yml`` beside the configuration, beside its folder, or in MaxText's folder ``configs`` above."""
    if name is None or not _NAME.fullmatch(name):
        return None
    folder = config.absolute().parent
    configs = (parent for parent in config.absolute().parents if parent.name == "configs")
    files = (place / "models" / f"{name}.yml" for place in (folder, folder.parent, *configs))
    return next((file for file in files if file.is_file()), None)
