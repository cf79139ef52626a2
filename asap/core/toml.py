"""TOML from strangers: plain values, whose whole numbers fit into 64 bits."""

import tomllib
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import bounded
from asap.core.text import plain


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """The mapping that a TOML text is.

    Raises:
        ConfigError: it is malformed, or has a whole number of more than 18 digits.
    """
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
