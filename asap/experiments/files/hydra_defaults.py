"""Files of settings that a YAML is laid over: ``defaults: [base_llama, _self_]``
(hydra.cc/docs/advanced/defaults_list), or by its path, ``defaults: ../base.yaml``, as NeMo's programs have it."""

from dataclasses import replace
from typing import Any

from asap.core.errors import ConfigError
from asap.core.files import is_file
from asap.core.text import plain
from asap.experiments.files.documents import Document, read_document

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
        return replace(document, values=_merged(_read(said, document, deeper), own))
    if not isinstance(said, list) or _SELF not in said:
        return document
    own = {key: value for key, value in document.values.items() if key != _KEY}
    found: dict[str, Any] = {}
    for name in said:
        if name == _SELF:
            found = _merged(found, own)
        elif isinstance(name, str) and not any(mark in name for mark in "@ /"):
            found = _merged(found, _read(name, document, deeper))
    groups = [item for item in said if isinstance(item, dict)]
    return replace(document, values=found | ({_KEY: groups} if groups else {}))


def _read(name: str, document: Document, deeper: int) -> dict[str, Any]:
    path = document.path.parent / (name if name.endswith(_YAML) else f"{name}.yaml")
    if not deeper or not is_file(path):
        reason = f"takes its {_KEY} from {plain(path.name, 60)}, which is not there"
        raise ConfigError(reason, where=document.place(_KEY), hint="lay it beside the file")
    return with_defaults(read_document(path), deeper - 1).values


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Mappings one over the other, key by key."""
    both = {key: value for key, value in below.items() if isinstance(value, dict) and isinstance(above.get(key), dict)}
    return {**below, **above, **{key: _merged(value, above[key]) for key, value in both.items()}}
