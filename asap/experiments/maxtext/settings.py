"""MaxText's settings: each value, where and by which layer of its configuration it was said; slips in their names."""

import difflib
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.remarks import decides
from asap.experiments.training_program import refuse
from asap.stacks.registry import irrelevant, spec, specs
from asap.stacks.stack_settings import StackSettings, nearest

TABLE = spec("maxtext")
DEFAULT = "MaxText default (base.yml)"
OVERRIDE = "override"


class SettingLayer(StrEnum):
    """Who says a value; a later layer wins."""

    DEFAULT = "default"
    FILE = "file"
    MODEL = "model"
    OVERRIDE = "override"


class Setting(NamedTuple):
    """A value and where it was said: ``run.yml:12``, ``override`` or MaxText's default."""

    value: Any
    origin: str
    layer: SettingLayer


class MaxTextSettings(StackSettings):
    """All settings by key. A text of ``None`` is no value, as in MaxText.

    Args:
        settings: by key.
        overruled: those of a file that the file of the model replaces by others: ``run.yml:3: base_emb_dim``.
    """

    def __init__(self, settings: Mapping[str, Setting], overruled: tuple[str, ...] = ()):
        super().__init__({}, DEFAULT, {key: one.origin for key, one in settings.items()})
        self._values = {key: None if str(one.value).lower() == "none" else one.value for key, one in settings.items()}
        self._settings, self.overruled = settings, overruled

    def layer(self, key: str) -> SettingLayer:
        """Who says a key."""
        return self._settings[key].layer if key in self._settings else SettingLayer.DEFAULT

    def said(self, key: str) -> bool:
        """Whether the file or the command says a key."""
        return self.layer(key) in (SettingLayer.FILE, SettingLayer.OVERRIDE)

    def of_layer(self, layer: SettingLayer) -> "MaxTextSettings":
        """Those that one layer says."""
        return MaxTextSettings({key: setting for key, setting in self._settings.items() if setting.layer is layer})

    def positive(self, key: str) -> int | None:
        """A whole number above zero; zero and -1 mean none in MaxText.

        Raises:
            ConfigError: it is below.
        """
        value = self.whole(key)
        if value is not None and value < -1:
            raise self.wrong(key, "a positive whole number")
        return value if value is not None and value > 0 else None


def refuse_unmodelled(settings: MaxTextSettings) -> None:
    """Refuse what runs no steps of training or steps of another kind, and models of parts that are not modelled.

    Raises:
        ConfigError: with the setting that tells.
    """
    for key in filter(settings.said, settings):
        if settings.where(key).partition(":")[0] in TABLE.names["serving"]:
            reason, hint = "makes this a configuration for serving", "give one that trains"
            raise ConfigError(reason, where=settings.source(key), hint=hint)
    refuse(TABLE, settings)


@cache
def known_keys() -> frozenset[str]:
    """Keys that MaxText has or had since 2024."""
    return TABLE.words | irrelevant("maxtext") | {*TABLE.names["tensors"]}


@cache
def own_keys() -> frozenset[str]:
    """Those that no table of another stack has: a file with none of them is not known to be MaxText's."""
    words = {word for folder, table in specs().items() for word in table.words | irrelevant(folder)}
    return known_keys() - {word.rpartition(".")[2] for word in words}


_LIKE, _ALMOST = 0.7, 0.88
"""Shares of equal letters: of a name that a user may have meant, and of one that even a fork's user means."""
_MOST_LISTED = 6


def check_keys(said: Mapping[str, str], of_fork: bool = False) -> None:
    """Refuse slips among keys. A key that resembles none of MaxText's is a fork's; beside one of these only a key that
    almost has a name of MaxText's is a slip.

    Args:
        said: keys, and where each was said.
        of_fork: whether a fork is known to run.

    Raises:
        ConfigError: with the nearest keys.
    """
    unknown = {key: place for key, place in said.items() if key not in known_keys()}
    of_fork = of_fork or any(not _alike(key) for key in unknown)
    for key, place in unknown.items():
        if not of_fork or nearest(key, known_keys(), _ALMOST):
            raise unknown_key(key, place)


def note_on_own_keys(settings: MaxTextSettings) -> tuple[str, ...]:
    """The keys of a fork; first what a run sets, and of that what by its name decides the model."""
    own = [key for key in settings if key not in known_keys()]
    if not own:
        return ()
    own.sort(key=lambda key: (settings.layer(key) is SettingLayer.DEFAULT, not decides(key)))
    listed = plain(", ".join(own[:_MOST_LISTED]), 200) + (", …" if len(own) > _MOST_LISTED else "")
    reason = "keys of a fork, which MaxText does not have, so not read; their effect is unknown"
    return (f"{settings.where(own[0])}: {reason}: {listed}",)


def unknown_key(key: str, place: str) -> ConfigError:
    """That MaxText does not have a key, with the nearest."""
    near = _alike(key)
    hint = f"did you mean {' or '.join(near)}?" if near else "MaxText's base.yml has no such key"
    return ConfigError(f"unknown key {plain(key, 60)}", where=place, hint=hint)


def _alike(key: str) -> list[str]:
    return difflib.get_close_matches(key, known_keys(), n=2, cutoff=_LIKE)
