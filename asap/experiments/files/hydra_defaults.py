"""YAML of Hydra: files of its defaults, settings laid over others, references."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from asap.core.errors import ConfigError, UsageError
from asap.core.files import is_file
from asap.core.text import plain
from asap.experiments.files.documents import Document, read_document
from asap.experiments.files.yaml_text import parse_yaml
from asap.models import Architecture
from asap.stacks.registry import merged

_KEY, _SELF = "defaults", "_self_"
_YAML = (".yaml", ".yml")
_DEEPEST = 8


def with_defaults(document: Document, deeper: int = _DEEPEST) -> Document:
    """The document over the files beside it that it names first; groups (``model: 8b``, ``model/8b``) are left.

    Raises:
        ConfigError: one is not there, or they name each other without end.
    """
    said = document.values.get(_KEY)
    if isinstance(said, str) and said.endswith(_YAML):
        own = {key: value for key, value in document.values.items() if key != _KEY}
        return replace(document, values=merged(_read(said, document, deeper), own))
    if not isinstance(said, list) or _SELF not in said:
        return document
    own = {key: value for key, value in document.values.items() if key != _KEY}
    found: dict[str, Any] = {}
    for name in said:
        if name == _SELF:
            found = merged(found, own)
        elif isinstance(name, str) and not any(mark in name for mark in "@ /"):
            found = merged(found, _read(name, document, deeper))
    groups = [item for item in said if isinstance(item, dict)]
    return replace(document, values=found | ({_KEY: groups} if groups else {}))


def _read(name: str, document: Document, deeper: int) -> dict[str, Any]:
    path = document.path.parent / (name if name.endswith(_YAML) else f"{name}.yaml")
    if not deeper or not is_file(path):
        reason = f"takes its {_KEY} from {plain(path.name, 60)}, which is not there"
        raise ConfigError(reason, where=document.place(_KEY), hint="lay it beside the file")
    return with_defaults(read_document(path), deeper - 1).values


_ADDS, _DELETES = "+", "~"


def is_hydra_key(values: Mapping[str, Any], key: str) -> bool:
    """Whether an override says a setting of a section, and not a field of a record."""
    section, dot, name = key.lstrip(_ADDS + _DELETES).partition(".")
    if not dot or (section == "model" and name in Architecture.model_fields):
        return False
    return section in values or key.startswith((_ADDS, _DELETES))


def laid_over(values: Mapping[str, Any], overrides: Iterable[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A YAML with the overrides of its sections on top, and the other overrides.

    Raises:
        ConfigError: a value is no YAML, or what stands before its last dot is no section.
        UsageError: an override is not ``key=value``.
    """
    found, others = dict(values), list[str]()
    for override in overrides:
        key, separator, text = override.partition("=")
        deletes = key.startswith(_DELETES)
        if not is_hydra_key(values, key):
            others.append(override)
        elif not separator and not deletes:
            raise UsageError("is not key=value", where=plain(override, 80))
        elif deletes:
            _section(found, key).pop(_name(key), None)
        else:
            _section(found, key)[_name(key)] = parse_yaml(text, f"override {plain(key, 80)}")[0]
    return found, tuple(others)


def _name(key: str) -> str:
    return key.rpartition(".")[2]


def _section(values: dict[str, Any], key: str) -> dict[str, Any]:
    """The section that a key stands in, which belongs to no other YAML from here on."""
    node = values
    for name in key.lstrip(_ADDS + _DELETES).split(".")[:-1]:
        below = node.get(name)
        if below is not None and not isinstance(below, Mapping):
            raise ConfigError(f"{plain(name, 60)} is no section", where=f"override {plain(key, 80)}")
        node[name] = dict(below or {})
        node = node[name]
    return node
