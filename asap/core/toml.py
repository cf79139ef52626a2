"""TOML from strangers: plain values, whose whole numbers fit into 64 bits."""

import re
import tomllib
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import bounded
from asap.core.text import plain

_DEEP_KEY = re.compile(r"(?:(?:[\w-]{1,99}|\"[^\"\n]{0,99}\"|'[^'\n]{0,99}')[ \t]{0,9}\.[ \t]{0,9}){101}")


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """The mapping that a TOML text is.

    Raises:
        ConfigError: it is malformed, has a whole number of more than 18 digits, or a key of more than a hundred parts,
            which the parser takes the square of the time for.
    """
    if _DEEP_KEY.search(text):
        raise ConfigError("is not TOML that is read: a key has more than a hundred parts", where=where)
    try:
        values = tomllib.loads(text)
        _check_numbers(values)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"is not TOML: {plain(error, 120)}", where=where) from error
    return values


def _check_numbers(value: Any) -> None:
    if isinstance(value, int):
        bounded(value)
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_numbers(item)
