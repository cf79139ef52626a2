"""Numbers that strangers write: what counts as one, and how large it may be.

A count in a configuration (layers, width, sequences, devices) is far below a billion; what is above is a slip of the
keyboard or an attack, and would overflow in the arithmetic that follows.
"""

import math
import re
import tomllib
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain

LARGEST_COUNT = 10**9
MOST_DIGITS = 18
"""Digits of any whole number in a file: what a 64-bit integer holds."""

_WHOLE = re.compile(r"[-+]?\d{1,3}(?:_?\d){0,15}", re.ASCII)
_DIGITS = re.compile(r"-?[0-9]{1,10}")
_DECIMAL = re.compile(r"[-+]?(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(?:e[-+]?\d{1,3})?", re.ASCII | re.IGNORECASE)


def bounded(value: int) -> int:
    """A whole number of at most 18 digits.

    Raises:
        ValueError: it has more.
    """
    if value.bit_length() > 64 or abs(value) >= 10**MOST_DIGITS:
        raise ValueError(f"a whole number of more than {MOST_DIGITS} digits")
    return value


def bounded_from_text(text: str) -> int:
    """Decimal digits as a number; raises like :func:`bounded`, however long the text is."""
    if len(text) > MOST_DIGITS + 1:
        raise ValueError(f"a whole number of more than {MOST_DIGITS} digits")
    return bounded(int(text))


def digits(text: object) -> int | None:
    """Decimal digits as a whole number between -10⁹ and 10⁹; ``None`` for anything else.

    ``str.isdecimal`` and ``int`` also take the digits of other scripts, and any number of them.
    """
    value = int(text) if isinstance(text, str) and _DIGITS.fullmatch(text) else None
    return value if value is not None and abs(value) <= LARGEST_COUNT else None


def whole_number(value: object) -> int:
    """A whole number from an integer, a float without fraction, or text; between -10⁹ and 10⁹.

    Raises:
        ValueError: it is something else.
    """
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > LARGEST_COUNT:
        raise ValueError(f"a whole number up to {LARGEST_COUNT:,}")
    return value


def real_number(value: object) -> float:
    """A finite number, also from text such as ``1e-3``, which YAML 1.1 leaves as text; between -10⁹ and 10⁹.

    Raises:
        ValueError: it is something else.
    """
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number")
    if not math.isfinite(value) or abs(value) > LARGEST_COUNT:
        raise ValueError(f"a number up to {LARGEST_COUNT:,}")
    return float(value)


def as_setting(value: object) -> str:
    """A value as settings and commands have it: ``2.0`` → ``2``, without separators; not for prose."""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


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


def half_digit(value: float) -> float:
    """By what share a printed figure may be off: half of its last digit; nothing for a whole number."""
    digits = str(round(value, 10)).partition(".")[2]
    return 0.5 * 10.0 ** -len(digits) / abs(value) if digits.isdigit() and int(digits) else 0.0
