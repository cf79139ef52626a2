"""Configurations of several runs in one file: a list of values where a setting takes one, or a search over settings."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.settings.stack_settings import dotted

_SEARCH = re.compile(r"(?:\w+_)?(?:sweep|grid|search_space|parameters)s?", re.ASCII)
_METHODS = ("grid", "random", "bayes")
"""Of Weights & Biases (docs.wandb.ai, *Sweep configuration*)."""
_MOST = 8


def one_value_needed(error: ConfigError, values: Mapping[str, Any], path: Path) -> ConfigError:
    """What a reader says of a file that is a search, or of a value that is a list of several: which value to say."""
    if over := _searched(values):
        reason = f"is a search over {plain(', '.join(over), 120)}: one run is read at a time"
        return ConfigError(reason, where=str(path), hint="give what one of its runs is started with")
    swept = [(key, value) for key, value in dotted(values).items() if _is_several(value)]
    named = [(key, value) for key, value in swept if _speaks_of(error.message, key, value)]
    if not named:
        return error
    key, found = named[0]
    listed = ", ".join(str(value) for value in found[:_MOST])
    reason = f"{plain(key, 80)} has several values ({plain(listed, 80)}), as in a sweep: one run is read at a time"
    return ConfigError(reason, where=error.where, hint=f"say which: add {plain(f'{key}={found[0]}', 100)}")


def _searched(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Settings that a file searches over; none where it is no search."""
    for key, section in values.items():
        if isinstance(section, dict) and _SEARCH.fullmatch(str(key)):
            found = tuple(dict.fromkeys(_varied(section)))
            if found and (key != "parameters" or values.get("method") in _METHODS):
                return found
    return ()


def _varied(section: Mapping[str, Any], name: str = "") -> Iterator[str]:
    """Settings with several values, also as ``{values: [1, 2]}``."""
    for key, value in section.items():
        if isinstance(value, dict):
            yield from _varied(value, name if key in ("parameters", "grid") else str(key))
        elif _is_several(value):
            yield name if key in ("values", "choices") and name else str(key)
        elif key in ("min", "max") and name:
            yield name


def _is_several(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(isinstance(item, int | float | str) for item in value)


def _speaks_of(message: str, key: str, value: list[Any]) -> bool:
    """Whether a message is about the kind of that value."""
    name = re.escape(key.rpartition(".")[2])
    return f"not {value!r}" in message or re.search(rf"(?<![\w.]){name}(?!\w).*(?:must be|valid)", message) is not None
