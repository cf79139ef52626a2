"""Numbers in words: `forty percent`, `three point five times`, `twice as fast`, `halves the step time`."""

import re
from collections.abc import Iterator

_ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen"""
_TENS = """twenty thirty forty fifty
sixty seventy eighty ninety"""
_WORDS = {word: float(value) for value, word in enumerate(_ONES.split())} | {"dozen": 12.0}
_WORDS |= {word: 10.0 * tens for tens, word in enumerate(_TENS.split(), 2)}
_SCALES = {"hundred": 100.0, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_ANY = "|".join(sorted([*_WORDS, *_SCALES], key=len, reverse=True))
_JOIN = r"(?:[\s-]+and)?[\s-]+"
NUMBER_WORDS = rf"\b(?:{_ANY})(?:{_JOIN}(?:{_ANY}))*(?:[\s-]+point(?:[\s-]+(?:{_ANY}))+)?\b"
"""A number in words."""

_PROPORTIONS = {
    2.0: r"twice|doubl(?:es?|ed|ing)",
    3.0: r"thrice|tripl(?:es?|ed|ing)",
    4.0: r"quadrupl(?:es?|ed|ing)",
    10.0: r"an? order of magnitude|orders of magnitude",
    1 / 2: r"half|halv(?:es?|ed|ing)",
    1 / 3: r"(?:a|one)[ -]third",
    2 / 3: r"two[ -]thirds",
    1 / 4: r"(?:a|one)[ -](?:quarter|fourth)",
    3 / 4: r"three[ -](?:quarters|fourths)",
    1 / 5: r"(?:a|one)[ -]fifth",
    1 / 10: r"(?:a|one)[ -]tenth",
}
_EITHER = "|".join(f"(?P<p{n}>{words})" for n, words in enumerate(_PROPORTIONS.values()))
_FILL = (
    r"(?:\s+(?:the|its|your|our|as|of|that|overall|total|training|device|peak|all|each|every|current|whole"
    r"|more|less|higher|lower))*"
)
_OF = (
    r"(?:fast|quick|slow|speed|throughput|performance|step|time|latency|memory|hbm|bandwidth|mfu|utili[sz]ation"
    r"|efficien|overhead|communication|gain|duration)"
)
_MOVED = r"(?:drop|fall|shr[iu]nk|grow|r[io]se|cut|reduc|improv|faster|slower|shorter|longer|less|more)\w*"
_PROPORTION = (
    re.compile(rf"\b(?:{_EITHER})\b(?={_FILL}\s+{_OF})", re.IGNORECASE),
    re.compile(rf"\b{_MOVED}(?:\s+\w+){{0,4}}?\s+(?:by|in|to)\s+(?:{_EITHER})\b", re.IGNORECASE),
)


def words_to_number(words: str) -> tuple[float, int]:
    """`two hundred and forty point five` → 240.5 and its one digit after the point."""
    whole, _, fraction = " ".join(words.lower().replace("-", " ").split()).partition(" point ")
    total = current = 0.0
    for word in whole.split():
        scale = _SCALES.get(word)
        current = max(current, 1.0) * scale if scale else current + _WORDS.get(word, 0.0)
        if scale and scale > _SCALES["hundred"]:
            total, current = total + current, 0.0
    digits = "".join(f"{_WORDS.get(word, 0.0):.0f}" for word in fraction.split())
    return total + current + float(f"0.{digits or 0}"), len(digits)


def proportions(prose: str) -> Iterator[tuple[int, int, float]]:
    """Where words say by how much something of a run grows or shrinks: start, end, how many times."""
    for pattern in _PROPORTION:
        for found in pattern.finditer(prose):
            number, value = next((n, v) for n, v in enumerate(_PROPORTIONS) if found[f"p{n}"])
            yield *found.span(f"p{number}"), value
