"""Files of stacks that are known and not read (``unread.toml``), with what to give instead."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from asap.core.errors import ConfigError, UnreadError
from asap.core.text import plain
from asap.experiments.named_model import SHAPES


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Signs(_Part):
    all: frozenset[str] = frozenset()
    none: frozenset[str] = frozenset()
    any: frozenset[str] = frozenset()
    least: int = 1
    text: dict[str, re.Pattern[str]] = {}
    sections: tuple[str, ...] = ()
    within: dict[str, frozenset[str]] = {}

    def hold(self, values: Mapping[str, Any]) -> bool:
        """Whether a mapping has all of them."""
        sections = (_at(values, key) for key in self.sections)
        return (
            self.all <= values.keys()
            and self.none.isdisjoint(values)
            and (not self.any or len(self.any & values.keys()) >= self.least)
            and all(pattern.search(str(_at(values, key))) for key, pattern in self.text.items())
            and (not self.sections or any(isinstance(found, dict | list) for found in sections))
            and all(
                isinstance(found := values.get(key), dict) and keys & found.keys() for key, keys in self.within.items()
            )
        )


class _Configuration(_Part):
    name: str
    instead: str
    fits: tuple[_Signs, ...]


class _Text(_Part):
    name: str
    instead: str
    pattern: re.Pattern[str]


class _Unread(_Part):
    instead: dict[str, str]
    configuration: tuple[_Configuration, ...]
    remaining: tuple[_Configuration, ...]
    program: tuple[_Text, ...]
    launcher: tuple[_Text, ...]
    otherwise: tuple[_Text, ...]


@cache
def _table() -> _Unread:
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return _Unread.model_validate(tomllib.loads(text))


def refuse_mapping(kind: Literal["configuration", "remaining"], values: Mapping[str, Any], path: Path) -> None:
    """Raise UnreadError where a configuration is of one of these stacks: before, or after it is offered to readers."""
    known: tuple[_Configuration, ...] = getattr(_table(), kind)
    if found := next((one for one in known if any(signs.hold(values) for signs in one.fits)), None):
        raise refusal(found.name, found.instead, path)


def refusal_of_text(kind: Literal["program", "launcher", "otherwise"], text: str, path: Path) -> ConfigError | None:
    """Why a program in Python, a script by its command, or one that starts nothing that is read is none that is read;
    ``None`` where it is of no such stack."""
    known: tuple[_Text, ...] = getattr(_table(), kind)
    return next((refusal(one.name, one.instead, path) for one in known if one.pattern.search(text)), None)


def refusal(name: str, instead: str, path: Path) -> ConfigError:
    """Why a file is not read.

    Args:
        name: what it is.
        instead: what to give, or its name in the table.
        path: the file.
    """
    known = {key: text.format(shapes=SHAPES) for key, text in _table().instead.items()}
    article = "an" if name[0] in "AEIOUaeio" else "a"
    reason = f"is {article} {plain(name, 80)}, which is not read"
    return UnreadError(reason, where=str(path), hint=known.get(instead) or instead.format(**known))


def _at(values: Mapping[str, Any], dotted: str) -> Any:
    node: Any = values
    for key in dotted.split("."):
        node = node.get(key) if isinstance(node, Mapping) else None
    return node
