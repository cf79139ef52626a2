"""YAML of Hydra: whether it is whole, and settings laid over it."""

from collections.abc import Iterable, Mapping
from typing import Any

from asap.core.errors import ConfigError, UnreadError
from asap.core.text import plain
from asap.experiments.files.documents import Document
from asap.experiments.files.yaml_text import parse_yaml
from asap.models import Architecture
from asap.stacks.stack_settings import not_a_setting

_KEY, _SELF = "defaults", "_self_"
_YAML = (".yaml", ".yml")


def check_whole(document: Document) -> None:
    """Raise UnreadError where a document takes settings from files that its defaults name; groups (``model: 8b``,
    ``model/8b``) are options of its program."""
    said = document.values.get(_KEY)
    listed = said if isinstance(said, list) and _SELF in said else []
    files = [name for name in listed if isinstance(name, str) and name != _SELF and not {*name} & {"@", "/", " "}]
    files += [said] if isinstance(said, str) and said.endswith(_YAML) else []
    if files:
        reason = f"takes settings from {plain(', '.join(files), 80)} (its {_KEY}), which are not read"
        raise UnreadError(reason, where=document.place(_KEY), hint="give what --cfg job prints of the whole")


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
            raise not_a_setting(override)
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
