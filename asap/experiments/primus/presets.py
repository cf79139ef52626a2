"""What an experiment of Primus builds on: the presets of its trainer and of its model, with what they extend
(``primus/core/config/preset_loader.py``).
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.files import is_file
from asap.core.text import plain
from asap.experiments.files.documents import read_document
from asap.experiments.files.yaml_text import parse_yaml
from asap.stacks.registry import merged

_VARIABLE = re.compile(r"\$\{([^:{}]+)(?::([^}]*))?\}")


def with_defaults(value: Any) -> Any:
    """The value with the default of each variable; ``None`` in the place of a text that needs one without default."""
    if isinstance(value, dict):
        return {key: with_defaults(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_defaults(item) for item in value]
    if not isinstance(value, str) or not _VARIABLE.search(value):
        return value
    if any(default is None for _, default in _defaults(value)):
        return None
    return _scalar(_VARIABLE.sub(lambda found: found[2], value))


def open_keys(values: dict[str, Any]) -> dict[str, str]:
    """Settings that a variable of the environment decides, by the text that says so; nested ones by dotted key."""
    found: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= {f"{key}.{inner}": text for inner, text in open_keys(value).items()}
        elif isinstance(value, str) and _VARIABLE.search(value):
            found[key] = value
    return found


def has_default(text: str) -> bool:
    """Whether every variable of a text has a default."""
    return all(default is not None for _, default in _defaults(text))


def _defaults(text: str) -> Iterator[tuple[str, str | None]]:
    return ((found[1], found[2]) for found in _VARIABLE.finditer(text))


def _scalar(text: str) -> Any:
    """A number or a truth value where the text is one."""
    if re.fullmatch(r"(?i)true|false|-?\d+|-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, re.ASCII):
        return parse_yaml(text.lower(), "variable")[0]
    return text


_ROOT = Path("primus") / "configs"
_DEEPEST = 8
_EXTENDS = "extends"
_BEFORE = ("bases", "includes")
"""What the same was called before: of several files the first has the say, and of ``extends`` the last."""


def find_presets(path: Path) -> Path | None:
    """The folder of presets beside or above a file; ``None`` if it lies outside of a copy of Primus."""
    folders = (folder / _ROOT for folder in path.absolute().parents)
    return next((folder for folder in folders if folder.is_dir()), None)


def read_preset(root: Path, kind: str, framework: str, name: str) -> dict[str, Any] | None:
    """The values of a preset; ``None`` if there is no such file.

    Args:
        root: the folder of presets.
        kind: ``models`` or ``modules``.
        framework: that it is for.
        name: of its file, with or without the suffix.

    Raises:
        ConfigError: it is malformed, or extends what lies outside of the presets, or too many.
    """
    path = root / kind / framework / name
    path = path if path.suffix in (".yaml", ".yml") else path.with_name(f"{path.name}.yaml")
    return _read(path, root, _DEEPEST) if _is_inside(path, root) and is_file(path) else None


def _read(path: Path, root: Path, deeper: int) -> dict[str, Any]:
    values = with_defaults(read_document(path).values)
    earlier = [name for key in _BEFORE for name in _names(values.pop(key, None))]
    below: dict[str, Any] = {}
    for name in (*reversed(earlier), *_names(values.pop(_EXTENDS, None))):
        place = path.parent / name
        if not deeper or not _is_inside(place, root) or not is_file(place):
            raise ConfigError(f"extends {plain(name, 60)}, which is not among the presets", where=str(path))
        below = merged(below, _read(place, root, deeper - 1))
    return merged(below, values)


def _names(said: object) -> list[str]:
    return [said] if isinstance(said, str) else [str(name) for name in said] if isinstance(said, list) else []


def _is_inside(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())
