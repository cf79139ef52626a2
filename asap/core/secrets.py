"""Secrets in text: by their form, by the name before them, and by the values of this process's environment."""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from asap.core.text import REDACTED, redact

_SECRET_NAME = re.compile(
    r"(apikey|accesskey|privatekey|secretkey|secret|password|passwd|passphrase|authorization|credentials?|cookie|(?<!per)token)$"
)
_SECRET_ASSIGNMENT = re.compile(
    r"(?i)((?:api[_-]?key|access[_-]?key|private[_-]?key|secret|password|passwd|passphrase|authorization"
    r"|(?:access|auth|refresh|bearer|hf)[_-]?token)[\\\"']*\s*[:=]\s*[\\\"']*)[^\s\"'\\,;&}]+"
)
_URL_PASSWORD = re.compile(r"(://[^/\s:@]*:)[^/\s@]+(?=@)")
_SHORTEST_SECRET = 8


def redacted(text: str) -> str:
    """``text`` without keys, passwords and the secret values of this process's environment."""
    return without(text, environment_secrets())


def without(text: str, secrets: tuple[str, ...]) -> str:
    """``text`` without some values, and without what looks like a secret."""
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    text = _SECRET_ASSIGNMENT.sub(rf"\1{REDACTED}", redact(text))
    return _URL_PASSWORD.sub(rf"\1{REDACTED}", text)


def without_secrets(value: Any) -> Any:
    """Plain JSON with every text redacted."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {key: REDACTED if _holds_secret(key, item) else without_secrets(item) for key, item in value.items()}
    return [without_secrets(item) for item in value] if isinstance(value, list) else value


@lru_cache(maxsize=1024)
def names_secret(name: str) -> bool:
    """Whether what goes by a name is a secret."""
    return _SECRET_NAME.search(re.sub(r"[^a-z0-9]", "", name.lower())) is not None


def environment_secrets() -> tuple[str, ...]:
    """Secret values of this process's environment, the longest first."""
    named = {value for name, value in os.environ.items() if names_secret(name) or name.upper().endswith("_KEY")}
    values = (value for value in named if len(value) >= _SHORTEST_SECRET)
    return tuple(sorted(values, key=len, reverse=True))


def _holds_secret(name: object, value: Any) -> bool:
    return isinstance(value, str) and bool(value) and names_secret(str(name))
