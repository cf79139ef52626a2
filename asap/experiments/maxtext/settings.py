"""MaxText's settings: each value, and which layer of MaxText's configuration said it."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import real_number, whole_number
from asap.core.text import plain
from asap.experiments.settings.remarks import note_on_unmodelled
from asap.stacks.spec import all_off

DEFAULT = "MaxText default (base.yml)"
OVERRIDE = "override"
_UNMODELLED = Path(__file__).parent / "unmodelled.toml"


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


TRAINS = "pre-training and supervised fine-tuning of all weights are read"
TRAINERS = re.compile(r"(?i)(?:^|[./])maxtext[\w./]*[./](?:train(?:_compile|_sft|_sft_native)?|sft_trainer)(?:\.py)?$")
"""Modules and files of MaxText that run steps of training, or compile one."""
OTHER_PROGRAMS = re.compile(
    r"(?i)(?:^|[./])maxtext[\w./]*[./](?:\w*decode|maxengine_server|train_(?:rl|dpo|distill)|grpo_trainer|"
    r"\w*inference_\w*|offline_(?:mode|inference))(?:\.py)?$"
)
"""Those that serve, or train otherwise."""

_SERVING_BASES = ("inference.yml", "inference_jetstream.yml")
"""In ``configs/inference``: what configurations that serve are laid over."""
_OF_RL = ("rl", "trainer_devices_fraction", "rollout_tensor_parallelism")
"""Keys of ``configs/post_train/rl.yml`` alone."""


def refuse_other_tasks(settings: MaxTextSettings) -> None:
    """Refuse what runs no steps of training, or steps of another kind.

    Raises:
        ConfigError: with the task, and the setting that tells.
    """
    for task, key in _other_tasks(settings):
        raise ConfigError(f"makes this a configuration for {task}", where=settings.source(key), hint=TRAINS)


def _other_tasks(settings: MaxTextSettings) -> Iterator[tuple[str, str]]:
    said = [key for key in settings if settings.layer(key) in (SettingLayer.FILE, SettingLayer.OVERRIDE)]
    if settings.get("model_call_mode") == "inference":
        yield "serving", "model_call_mode"
    yield from (("serving", key) for key in said if settings.origin(key).partition(":")[0] in _SERVING_BASES)
    yield from (("reinforcement learning", key) for key in _OF_RL if key in said)
    if settings.flag("use_grpo"):
        yield "reinforcement learning", "use_grpo"
    if settings.flag("use_dpo"):
        yield "training by preferences", "use_dpo"
    adapters = settings.get("lora")
    if isinstance(adapters, dict) and adapters.get("enable_lora") is True:
        yield "training of adapters", "lora"


def not_predicted(settings: MaxTextSettings) -> tuple[str, ...]:
    """One note that names them all; none where all are as MaxText's base.yml has them (commit e591f30c)."""
    said = {key: settings[key] for key in settings if settings.layer(key) is not SettingLayer.DEFAULT}
    return note_on_unmodelled(said, unmodelled())


@cache
def unmodelled() -> dict[str, dict[str, object]]:
    """Settings that no prediction uses, by what they are likely to bring, with what each is under it."""
    return all_off(tomllib.loads(_UNMODELLED.read_text(encoding="utf-8")))
