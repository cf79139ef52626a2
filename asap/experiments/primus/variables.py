"""Variables of the environment in a YAML of Primus: ``${PRIMUS_TP:1}`` (``primus/core/config/yaml_loader.py``)."""

import re
from collections.abc import Iterator
from typing import Any

from asap.experiments.files.yaml_text import parse_yaml

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
