"""Any Python value made plain JSON, with its secrets taken out."""

import dataclasses
import math
import os
import re
from collections.abc import Mapping, Set
from datetime import date
from enum import Enum
from typing import Any

from pydantic import BaseModel

from asap.core.text import REDACTED, redact

_SECRET_NAME = re.compile(
    r"(apikey|accesskey|privatekey|secretkey|secret|password|passwd|passphrase|authorization|credentials?|cookie|token)$"
)
_SECRET_ASSIGNMENT = re.compile(
    r"(?i)((?:api[_-]?key|access[_-]?key|private[_-]?key|secret|password|passwd|passphrase|authorization"
    r"|(?:access|auth|refresh|bearer|hf)[_-]?token)[\\\"']*\s*[:=]\s*[\\\"']*)[^\s\"'\\,;&}]+"
)
_URL_PASSWORD = re.compile(r"(://[^/\s:@]*:)[^/\s@]+(?=@)")
_SHORTEST_SECRET = 8
_DEEPEST = 64
_WIDEST_INTEGER = 1024


def plain_payload(value: Any) -> Any:
    """``value`` as JSON data without secrets; what JSON cannot say is represented as text."""
    return _plain(value, _environment_secrets(), ())


def redacted(text: str) -> str:
    """``text`` without keys, passwords and the secret values of this process's environment."""
    return _redacted(text, _environment_secrets())


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
        return _redacted(value, secrets)
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
            return {_redacted(str(key), secrets): _field(key, item, secrets, parents) for key, item in value.items()}
        if isinstance(value, list | tuple | Set):
            return [_plain(item, secrets, parents) for item in value]
        return _redacted(repr(value), secrets)
    except Exception as error:
        return f"<{type(value).__name__} that cannot be represented: {type(error).__name__}>"


def _field(key: object, value: Any, secrets: tuple[str, ...], parents: tuple[int, ...]) -> Any:
    """A secret is text, or holds text: ``experts_per_token: 2`` is none."""
    harmless = value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and not value)
    return REDACTED if not harmless and _names_secret(str(key)) else _plain(value, secrets, parents)


def _redacted(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    text = _SECRET_ASSIGNMENT.sub(rf"\1{REDACTED}", redact(text))
    return _URL_PASSWORD.sub(rf"\1{REDACTED}", text)


def _names_secret(name: str) -> bool:
    return _SECRET_NAME.search(re.sub(r"[^a-z0-9]", "", name.lower())) is not None


def _environment_secrets() -> tuple[str, ...]:
    named = {value for name, value in os.environ.items() if _names_secret(name) or name.upper().endswith("_KEY")}
    values = (value for value in named if len(value) >= _SHORTEST_SECRET)
    return tuple(sorted(values, key=len, reverse=True))
