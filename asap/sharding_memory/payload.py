"""Any Python value made plain JSON, with its secrets taken out."""

import dataclasses
import math
from collections.abc import Mapping, Set
from datetime import date
from enum import Enum
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from asap.core.secrets import environment_secrets, names_secret, without
from asap.core.text import REDACTED

_DEEPEST = 64
_WIDEST_INTEGER = 1024


def plain_payload(value: Any) -> Any:
    """``value`` as JSON data without secrets; what JSON cannot say is represented as text."""
    return _plain(value, environment_secrets(), ())


def _plain(value: Any, secrets: tuple[str, ...], parents: tuple[int, ...]) -> Any:
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() <= _WIDEST_INTEGER else hex(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return without(value, secrets)
    if isinstance(value, date):
        return value.isoformat()
    if id(value) in parents or len(parents) >= _DEEPEST:
        return f"<{type(value).__name__} inside itself or too deep>"
    return _plain_container(value, secrets, (*parents, id(value)))


def _plain_container(value: Any, secrets: tuple[str, ...], parents: tuple[int, ...]) -> Any:
    try:
        if isinstance(value, BaseModel):
            value = value.model_dump()
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        elif callable(to_list := getattr(value, "tolist", None)):
            return _plain(to_list(), secrets, parents)
        if isinstance(value, Mapping):
            return {_key(str(key), secrets): _field(key, item, secrets, parents) for key, item in value.items()}
        if isinstance(value, list | tuple | Set):
            return [_plain(item, secrets, parents) for item in value]
        return without(repr(value), secrets)
    except Exception as error:
        return f"<{type(value).__name__} that cannot be represented: {type(error).__name__}>"


@lru_cache(maxsize=1024)
def _key(key: str, secrets: tuple[str, ...]) -> str:
    """A key without secrets; the same few return in every record."""
    return without(key, secrets)


def _field(key: object, value: Any, secrets: tuple[str, ...], parents: tuple[int, ...]) -> Any:
    """A secret is text, or holds text: ``experts_per_token: 2`` is none."""
    harmless = value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and not value)
    return REDACTED if not harmless and names_secret(str(key)) else _plain(value, secrets, parents)
