"""Keys that MaxText does not have: slips of the keyboard, which are refused, and those of a fork, which are named."""

import difflib
from collections.abc import Mapping

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.maxtext.defaults import known_keys
from asap.experiments.maxtext.settings import MaxTextSettings, SettingLayer
from asap.experiments.settings.near_misses import nearest
from asap.experiments.settings.own_names import decides

_LIKE, _ALMOST = 0.7, 0.88
"""Shares of equal letters: of a name that a user may have meant, and of one that even a fork's user means."""
_MOST_LISTED = 6


def check_key(key: str, place: str) -> None:
    """Refuse a key that MaxText does not have.

    Raises:
        ConfigError: with the nearest keys.
    """
    if key not in known_keys():
        raise _unknown(key, place)


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
            raise _unknown(key, place)


def note_on_own_keys(settings: MaxTextSettings) -> tuple[str, ...]:
    """The keys of a fork; first what a run sets, and of that what by its name decides the model."""
    own = [key for key in settings if key not in known_keys()]
    if not own:
        return ()
    own.sort(key=lambda key: (settings.layer(key) is SettingLayer.BASE, not decides(key)))
    listed = plain(", ".join(own[:_MOST_LISTED]), 200) + (", …" if len(own) > _MOST_LISTED else "")
    reason = "a fork's, with keys that MaxText does not have, not read, so that what they change is not known"
    return (f"{settings.origin(own[0])}: {reason}: {listed}",)


def is_own(key: str) -> bool:
    """Whether a key is none of MaxText's."""
    return key not in known_keys()


def _unknown(key: str, place: str) -> ConfigError:
    near = _alike(key)
    hint = f"did you mean {' or '.join(near)}?" if near else "MaxText's base.yml has no such key"
    return ConfigError(f"unknown key {plain(key, 60)}", where=place, hint=hint)


def _alike(key: str) -> list[str]:
    return difflib.get_close_matches(key, known_keys(), n=2, cutoff=_LIKE)
