"""A copy of the user's configuration file in which the settings of a try are changed."""

import json
from collections.abc import MutableMapping
from pathlib import Path
from shutil import copymode
from typing import Any

import tomlkit
import yaml

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.files.documents import read_text

SUFFIXES = (".yaml", ".yml", ".json", ".toml")


def read_document(path: Path) -> MutableMapping[str, Any]:
    """The mapping in a file of YAML, JSON or TOML.

    Raises:
        BadInputError: the file cannot be read.
        ConfigError: it is of another kind, malformed, or no mapping.
    """
    if path.suffix not in SUFFIXES:
        raise ConfigError("is neither YAML, JSON nor TOML", where=str(path), hint="name it .yaml, .json or .toml")
    text = read_text(path)
    try:
        match path.suffix:
            case ".json":
                document = json.loads(text)
            case ".toml":
                document = tomlkit.parse(text)
            case _:
                document = yaml.safe_load(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"cannot be parsed: {plain(error, 120)}", where=str(path)) from error
    if not isinstance(document, MutableMapping):
        raise ConfigError("is no mapping of settings", where=str(path))
    return document


def write_changed(path: Path, settings: dict[str, Any], folder: Path) -> Path:
    """Write the file into a folder, as private as it is, with settings changed or added; comments stay in TOML only.

    Raises:
        BadInputError, ConfigError: as :func:`read_document`, or a setting stands where the file has a section.
    """
    document = read_document(path)
    _change(document, settings, str(path))
    copy = folder / path.name
    copy.touch(mode=0o600)
    copy.write_text(_written(document, path.suffix), encoding="utf-8")
    copymode(path, copy)
    return copy


def _change(document: MutableMapping[str, Any], settings: dict[str, Any], where: str) -> None:
    for key, value in settings.items():
        below = document.get(key)
        if isinstance(value, dict) and below is not None:
            if not isinstance(below, MutableMapping):
                raise ConfigError(f"{plain(key, 40)} is no section", where=where)
            _change(below, value, where)
        else:
            document[key] = value


def _written(document: MutableMapping[str, Any], suffix: str) -> str:
    if suffix == ".json":
        return json.dumps(document, indent=2) + "\n"
    return tomlkit.dumps(document) if suffix == ".toml" else yaml.safe_dump(document, sort_keys=False)
