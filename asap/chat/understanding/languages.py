"""Words of other languages, put into the English ones that the rest of the reading knows."""

import re
import tomllib
from functools import cache
from pathlib import Path

_FOREIGN = re.compile(
    r"[^\x00-\x7f]|\b(?:was|wie|warum|welche\w*|nicht|und|der|die|das|vorschlag|pro|mit|quel\w*|pour|est|les|une|avec|qu[ei]"
    r"|cu[aá]\w*|por|para|los|las|con|como|com|uma|che|della|quant[oaie]|perch[eé]|sono|se dobra\w*"
    r"|propuesta|propost\w|compare les)\b",
    re.I,
)
_MARKERS = {"was", "die", "pro", "se", "con", "com", "como", "los", "las", "est"}


def in_english(text: str) -> str:
    """The text with known foreign words replaced; English text stays as it is."""
    text = text.translate(_FULL_WIDTH)
    if not _is_foreign(text):
        return text
    pattern, english = _glossary()
    text = pattern.sub(lambda match: f" {english[match.lastgroup or '']} ", text)
    return " ".join(_UNSPACED.sub(" ", text).split())


_UNSPACED = re.compile(r"(?<=[\u2e80-\uffff])(?=[\x00-\x7f])|(?<=[\x00-\x7f])(?=[\u2e80-\uffff])")
"""Between a script without spaces and a number or a Latin word."""
_FULL_WIDTH = {0xFF1F: "?", 0xFF01: "!", 0xFF0C: ", ", 0x3002: ". ", 0xFF05: "%", 0xBF: " ", 0xA1: " ", 0x3001: ", "}
_FULL_WIDTH |= {0xFF10 + digit: str(digit) for digit in range(10)}
_TYPOGRAPHY = set("–—…“”‘’×·µ→≈±§°•«»€£")


def _is_foreign(text: str) -> bool:
    if any(ord(letter) > 0x7F and letter.isalpha() and letter not in _TYPOGRAPHY for letter in text):
        return True
    hits = {match.group().lower() for match in _FOREIGN.finditer(text) if match.group().isascii()}
    return len(hits) >= 2 or bool(hits - _MARKERS - {"compare les"}) or "compare les" in hits


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
    return rf"(?<![^\W\d_]){escaped}(?!\w)" if spaced else escaped
