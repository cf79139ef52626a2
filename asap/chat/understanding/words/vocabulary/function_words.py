"""Small words by language, from ``function_words.toml``."""

import tomllib
from functools import cache
from pathlib import Path


@cache
def function_words() -> dict[str, frozenset[str]]:
    """The small words of each language, by its code: ``en``, ``de``."""
    table = tomllib.loads(Path(__file__).with_name("function_words.toml").read_text(encoding="utf-8"))
    return {language: frozenset(words) for language, words in table.items()}


@cache
def foreign_function_words() -> frozenset[str]:
    """Those of the other languages that are none in English."""
    words = function_words()
    return frozenset().union(*words.values()) - words["en"]
