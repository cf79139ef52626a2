"""Settings of a training stack by name, each with where it was said, read with types."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, UsageError
from asap.core.numbers import digits, real_number, whole_number
from asap.core.secrets import redacted
from asap.core.text import plain

_REFERENCE = re.compile(r"\$\{([^${}]+)\}")
_WORDS = re.compile(r"[^\s,\[\]'\"]+")
_DEEPEST = 8


class StackSettings(Mapping[str, Any]):
    """Values under the stack's own names. ``None`` counts as not said.

    Args:
        values: by name.
        place: the file, for errors.
        places: ``name → file:line`` where it is known.
    """

    def __init__(self, values: Mapping[str, Any], place: str, places: Mapping[str, str] | None = None):
        self._values = {key: value for key, value in values.items() if value is not None}
        self._place = place
        self.places = places or {}

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def overridden(self, values: Mapping[str, Any]) -> "StackSettings":
        """The settings with others on top, which have no line."""
        places = {key: place for key, place in self.places.items() if key not in values}
        return StackSettings(self._values | dict(values), self._place, places)

    def source(self, key: str) -> str:
        """``train.sh:12: num_layers``: for provenance."""
        return f"{self.where(key).rpartition('/')[2]}: {key}"

    def where(self, key: str | None = None) -> str:
        """The place of a setting, for errors."""
        return self.places.get(key, self._place) if key else self._place

    def count(self, key: str, default: int | None = None) -> int | None:
        """A whole number above zero.

        Raises:
            ConfigError: it is something else.
        """
        number = self.whole(key, default)
        if number is not None and number < 1:
            raise self.wrong(key, "a whole number above zero")
        return number

    def whole(self, key: str, default: int | None = None) -> int | None:
        """A whole number, also as text; raises like :meth:`count`."""
        value = self.get(key, default)
        if value is None:
            return None
        try:
            return whole_number(value.strip() if isinstance(value, str) else value)
        except ValueError as error:
            raise self.wrong(key, str(error)) from error

    def number(self, key: str) -> float | None:
        """A number, also as text; raises like :meth:`count`."""
        try:
            return None if self.get(key) is None else real_number(self[key])
        except ValueError as error:
            raise self.wrong(key, str(error)) from error

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false, also as text, 1 or 0, yes or no; raises like :meth:`count`."""
        text = str(self.get(key, default)).casefold()
        if text in ("1", "true", "yes"):
            return True
        if text in ("0", "false", "no"):
            return False
        raise self.wrong(key, "true or false")

    def text(self, key: str, default: str | None = None) -> str | None:
        """A word; ``None`` where it is empty. Raises like :meth:`count`."""
        value = self.get(key, default)
        if isinstance(value, dict | list):
            raise self.wrong(key, "a word")
        return str(value) if value not in (None, "") else None

    def words(self, key: str) -> tuple[str, ...]:
        """Several words, of a list or a text: ``a b``, ``a,b``, ``["a", "b"]``."""
        value = self.get(key, ())
        return tuple(_WORDS.findall(value)) if isinstance(value, str) else tuple(map(str, value))

    def wrong(self, key: str, what: str) -> ConfigError:
        """The error for a value that is not what it should be."""
        return ConfigError(f"{key} must be {what}, not {plain(repr(self[key]), 40)}", where=self.where(key))

    def harmless(self) -> dict[str, Any]:
        """The values for a record, without what looks like a secret."""
        return {key: harmless(value) for key, value in self._values.items()}


def dotted(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under one name each: ``parallelism.tensor_parallel_degree``."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= dotted(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by dotted key in sections."""
    tree: dict[str, Any] = {}
    for key, value in settings.items():
        *sections, name = key.split(".")
        inner = tree
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[name] = value
    return tree


def resolved(said: Mapping[str, Any], around: Collection[str] = ()) -> dict[str, Any]:
    """Settings with what they refer to, as OmegaConf has it (``${a.b}``, ``${.c}``) and NeMo (``${multiply:a, b}``); as
    they are where that is not said.

    Args:
        said: by dotted key.
        around: sections of a larger configuration that this one may stand in, by whose names it refers to itself.
    """
    beside = {key: f"{key.rpartition('.')[0]}." if "." in key else "" for key in said}
    texts = {key: value.replace("${.", f"${{{beside[key]}") for key, value in said.items() if isinstance(value, str)}
    whole = {**said, **texts}

    def value_of(value: Any, deeper: int) -> Any:
        found = _REFERENCE.search(value) if isinstance(value, str) and deeper else None
        new = _referred(found[1], whole, around) if found else None
        if found is None or new is None:
            return value
        return value_of(new if found[0] == value else value.replace(found[0], str(new)), deeper - 1)

    found = {key: value_of(value, _DEEPEST) for key, value in whole.items()}
    return {key: value for key, value in found.items() if str(value) not in ("null", "~")}


def _referred(text: str, whole: Mapping[str, Any], around: Collection[str]) -> Any:
    """What a reference stands for; ``None`` where that is not said."""
    name, colon, arguments = text.partition(":")
    if not colon:
        section, _, rest = text.partition(".")
        return whole.get(text, whole.get(rest) if section in around else None)
    first, second = [*(digits(part.strip()) for part in arguments.split(",")), None, None][:2]
    if name not in ("multiply", "divide") or first is None or not second:
        return None
    return first * second if name == "multiply" else first // second


def not_a_setting(text: str) -> UsageError:
    """What is said of an argument that is no ``key=value``; of a second file, where it belongs."""
    second = "one run is read: give its configuration, and its log as --step-time LOG" if Path(text).is_file() else None
    return UsageError("is not key=value", where=plain(text, 80) or "(empty)", hint=second)


def overriding(overrides: Iterable[str], name: Callable[[str], str] = str) -> dict[str, str]:
    """``key=value`` of a command line, under the names that ``name`` gives the keys.

    Raises:
        UsageError: an override is not ``key=value``.
    """
    found: dict[str, str] = {}
    for override in overrides:
        key, separator, value = override.partition("=")
        if not separator:
            raise not_a_setting(override)
        found[name(key)] = value
    return found


def harmless(value: Any) -> Any:
    """A value without what looks like a secret."""
    if isinstance(value, dict):
        return {redacted(str(key)): harmless(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [harmless(item) for item in value]
    return redacted(value) if isinstance(value, str) else value
