"""MaxText's settings: each value, and which layer of MaxText's configuration said it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import real_number
from asap.experiments.training_program import refuse
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings

TABLE = spec("maxtext")
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


class MaxTextSettings(StackSettings):
    """All settings by key. A text of ``None`` is no value, as in MaxText."""

    def __init__(self, settings: Mapping[str, Setting], overruled: tuple[str, ...] = ()):
        super().__init__({}, "")
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

    def said(self, key: str) -> bool:
        """Whether the file or the command says a key."""
        return self.layer(key) in (SettingLayer.FILE, SettingLayer.OVERRIDE)

    def only(self, keeps: Callable[[str, SettingLayer], bool]) -> "MaxTextSettings":
        """Those whose key and layer pass."""
        return MaxTextSettings({k: setting for k, setting in self._settings.items() if keeps(k, setting.layer)})

    def source(self, key: str) -> str:
        """``run.yml:12: base_emb_dim``: for the provenance of what was made of a setting."""
        return f"{self.where(key)}: {key}"

    def where(self, key: str | None = None) -> str:
        """Where a key is said."""
        return self._settings[key].origin if key is not None and key in self._settings else DEFAULT

    def positive(self, key: str) -> int | None:
        """A whole number above zero; zero and -1 mean none in MaxText.

        Raises:
            ConfigError: it is below.
        """
        value = self.whole(key)
        if value is not None and value < -1:
            raise self.wrong(key, "a positive whole number")
        return value if value is not None and value > 0 else None

    def number(self, key: str) -> float | None:
        """A number; raises like :meth:`positive`."""
        try:
            return None if self.get(key) is None else real_number(self[key])
        except ValueError as error:
            raise self.wrong(key, str(error)) from error


def refuse_unmodelled(settings: MaxTextSettings) -> None:
    """Refuse what runs no steps of training or steps of another kind, and models of parts that are not modelled.

    Raises:
        ConfigError: with the setting that tells.
    """
    for key in settings:
        if settings.said(key) and settings.where(key).partition(":")[0] in TABLE.names["serving"]:
            reason, hint = "makes this a configuration for serving", "give one that trains"
            raise ConfigError(reason, where=settings.source(key), hint=hint)
    refuse(TABLE, settings)
    width, residual = settings.positive("moe_expert_input_dim"), settings.positive("base_emb_dim")
    if width and width != residual:
        reason = f"experts of {width}, narrower than the residual stream of {residual}, are not modelled"
        raise ConfigError(reason, where=settings.source("moe_expert_input_dim"))
