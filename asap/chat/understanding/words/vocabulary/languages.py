"""Words of other languages, put into the English ones that the rest of the reading knows."""

import re
import tomllib
from functools import cache
from pathlib import Path

from asap.chat.understanding.topics.examples import examples
from asap.chat.understanding.words.vocabulary.function_words import foreign_function_words, function_words


def in_english(text: str) -> str:
    """The text with known foreign words replaced; English text stays as it is."""
    text = text.translate(_FULL_WIDTH)
    if not _is_foreign(text):
        return text
    pattern, english = _glossary()
    text = pattern.sub(lambda match: f" {english[match.lastgroup or '']} ", text)
    text = _WORD.sub(lambda match: "" if match.group().lower() in foreign_function_words() else match.group(), text)
    return " ".join(_UNSPACED.sub(" ", text).split())


def speaks_english(text: str) -> bool:
    """Whether enough words of a text are English."""
    known = function_words()["en"] | {word for _, example in examples() for word in _WORD.findall(example.lower())}
    words = _WORD.findall(text.lower())
    return sum(word in known for word in words) > _LEAST_ENGLISH * len(words) or not words


_LEAST_ENGLISH = 0.4
_UNSPACED = re.compile(r"(?<=[\u2e80-\uffff])(?=[\x00-\x7f])|(?<=[\x00-\x7f])(?=[\u2e80-\uffff])")
"""Between a script without spaces and a number or a Latin word."""
_WORD = re.compile(r"(?<![^\W_])(?<!/)[^\W\d_]+(?![^\W_])")
"""Letters that stand alone: the "e" of "v6e" is no word, nor the "o" of "w/o"."""
_FULL_WIDTH = {0xFF1F: "?", 0xFF01: "!", 0xFF0C: ", ", 0x3002: ". ", 0xFF05: "%", 0xBF: " ", 0xA1: " ", 0x3001: ", "}
_FULL_WIDTH |= {0xFF10 + digit: str(digit) for digit in range(10)}
_TYPOGRAPHY = set("–—…“”‘’×·µ→≈±§°•«»€£")


def _is_foreign(text: str) -> bool:
    """Whether a text has letters beside the Latin ones, or more words of another language than of English."""
    if any(ord(letter) > 0x7F and letter.isalpha() and letter not in _TYPOGRAPHY for letter in text):
        return True
    words = _WORD.findall(text.lower())
    hits = {language: sum(word in small for word in words) for language, small in function_words().items()}
    english = hits.pop("en")
    return max(hits.values()) + len(_foreign_words().findall(text)) > english


@cache
def _foreign_words() -> re.Pattern[str]:
    """The Latin words of the glossary that no English example has."""
    english = " ".join(text.lower() for _, text in examples())
    table = tomllib.loads(Path(__file__).with_name("glossary.toml").read_text(encoding="utf-8"))
    latin = [word for words in table.values() for word in words if word[0] < "\u0250"]
    return re.compile("|".join(_written(word) for word in latin if not _is_in(english, word)), re.I)


def _is_in(text: str, word: str) -> bool:
    beginning = re.split(r"[* ]", word)[0]
    return beginning in text and re.search(_written(word), text) is not None


@cache
def _glossary() -> tuple[re.Pattern[str], dict[str, str]]:
    """One pattern over all foreign words, longest first, and the English of each of its groups."""
    table = tomllib.loads(Path(__file__).with_name("glossary.toml").read_text(encoding="utf-8"))
    pairs = sorted(((word, english) for english, words in table.items() for word in words), key=lambda p: -len(p[0]))
    written = "|".join(f"(?P<g{number}>{_written(word)})" for number, (word, _) in enumerate(pairs))
    return re.compile(written, re.I), {f"g{number}": english for number, (_, english) in enumerate(pairs)}


def _written(word: str) -> str:
    escaped = re.escape(word).replace(r"\*", r"\w*").replace(r"\ ", r",?\s+")
    spaced = all(letter < "\u2e80" for letter in word)
    return rf"(?<![^\W_])(?<!/){escaped}(?!\w)" if spaced else escaped
