"""Word lists of ``doubt.toml``: what keeps a sentence from being a report about this run."""

import re
import tomllib
from functools import cache
from pathlib import Path


def has(kind: str, text: str) -> bool:
    """Whether a text has a word of a list of ``doubt.toml``."""
    return words_of(kind).search(text) is not None


def words_of(kind: str) -> re.Pattern[str]:
    """The pattern of a list of ``doubt.toml``."""
    return _patterns()[kind]


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    table = tomllib.loads(Path(__file__).with_name("doubt.toml").read_text(encoding="utf-8"))
    return {kind: _any_of(words) for kind, words in table.items()}


def _any_of(words: list[str]) -> re.Pattern[str]:
    written = "|".join(re.escape(word).replace(r"\*", r"\w*") for word in words)
    return re.compile(rf"(?<!\w)(?:{written})(?!\w)", re.I)
