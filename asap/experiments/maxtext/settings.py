"""MaxText's settings: each value, and which layer of MaxText's configuration said it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import real_number, whole_number
from asap.core.text import plain

DEFAULT = "MaxText default (base.yml)"
OVERRIDE = "override"


class SettingLayer(StrEnum):
    """Who says a value; a later layer wins."""

    DEFAULT = "default"
    BASE = "base"
    FILE = "file"
    MODEL = "model"
    OVERRIDE = "override"


@dataclass(frozen=True)
class Setting:
    """A value and where it was said: ``run.yml:12``, ``override`` or MaxText's default."""

    value: Any
    origin: str
    layer: SettingLayer


class MaxTextSettings(Mapping[str, Any]):
    """All settings by key. A text of ``None`` is no value, as in MaxText."""

    def __init__(self, settings: Mapping[str, Setting], overruled: tuple[str, ...] = ()):
        self._settings = settings
        self.overruled = overruled
        """Settings of a file that the file of the model replaces by others: ``run.yml:3: base_emb_dim``."""

    @property
    def of_model(self) -> tuple[str, ...]:
        """Keys that the file of the model sets."""
        return tuple(key for key, setting in self._settings.items() if setting.layer is SettingLayer.MODEL)

    def __getitem__(self, key: str) -> Any:
        value = self._settings[key].value
        return None if isinstance(value, str) and value.lower() == "none" else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)

    def layer(self, key: str) -> SettingLayer:
        """Who says a key."""
        return self._settings[key].layer if key in self._settings else SettingLayer.DEFAULT

    def only(self, keeps: Callable[[str, SettingLayer], bool]) -> "MaxTextSettings":
        """Those whose key and layer pass."""
        return MaxTextSettings({k: setting for k, setting in self._settings.items() if keeps(k, setting.layer)})

    def overridden(self) -> "MaxTextSettings":
        """The overrides alone."""
        return self.only(lambda _, layer: layer is SettingLayer.OVERRIDE)

    def source(self, key: str) -> str:
        """``run.yml:12: base_emb_dim``: for the provenance of what was made of a setting."""
        return f"{self.origin(key)}: {key}"

    def origin(self, key: str) -> str:
        """Where a key is said."""
        return self._settings[key].origin if key in self._settings else DEFAULT

    def whole(self, key: str) -> int | None:
        """A whole number; ``None`` where there is no value.

        Raises:
            ConfigError: it is something else.
        """
        return self._number(key, whole_number)

    def positive(self, key: str) -> int | None:
        """A whole number above zero; zero and -1 mean none in MaxText.

        Raises:
            ConfigError: it is below.
        """
        value = self.whole(key)
        if value is not None and value < -1:
            raise self._wrong(key, "a positive whole number")
        return value if value is not None and value > 0 else None

    def number(self, key: str) -> float | None:
        """A number; raises like :meth:`whole`."""
        return self._number(key, real_number)

    def flag(self, key: str) -> bool:
        """True or false; raises like :meth:`whole`."""
        value = self.get(key, False)
        if isinstance(value, bool):
            return value
        raise self._wrong(key, "true or false")

    def text(self, key: str) -> str | None:
        """Text; ``None`` where it is empty; raises like :meth:`whole`."""
        value = self.get(key)
        if isinstance(value, list | dict):
            raise self._wrong(key, "text")
        return str(value) if value not in (None, "") else None

    def _number(self, key: str, read: Callable[[object], Any]) -> Any:
        value = self.get(key)
        if value is None:
            return None
        try:
            return read(value)
        except ValueError as error:
            raise self._wrong(key, str(error)) from error

    def _wrong(self, key: str, what: str) -> ConfigError:
        return ConfigError(f"{key} must be {what}, not {plain(repr(self[key]), 40)}", where=self.origin(key))
