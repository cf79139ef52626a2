"""Quantities in a sentence: numbers with a unit or a factor, in digits or in words.

A number is ``1.2``, ``-3``, ``11,2`` (decimal comma), ``16,384``, ``16k``, ``1e12`` or words (``a trillion``).
Its unit decides what it can be: ``s`` and ``ms`` are times, ``x`` a factor, ``%`` a share; no unit is a count.
"""

import re
from dataclasses import dataclass, replace

LARGEST_AMOUNT = 1e18
"""No quantity of a training run is larger; what is above counts as this, which no check of a quantity lets through."""

_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "twelve": 12, "sixteen": 16, "thirty-two": 32, "sixty-four": 64, "a": 1, "an": 1, "half a": 0.5,
}  # fmt: skip
_FACTORS = {
    r"doubl\w*|twice|two ?fold": 2.0, r"tripl\w*|three ?fold": 3.0, r"quadrupl\w*|four ?fold": 4.0,
    r"halv\w*|half(?! an?\b)": 0.5,
}  # fmt: skip
_SCALES = {
    "k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "mio": 1e6, "b": 1e9, "bn": 1e9, "billion": 1e9,
    "t": 1e12, "tn": 1e12, "trillion": 1e12,
}  # fmt: skip
_MONEY = r"(?:dollars?|bucks?|usd|\$|eur|euros?)(?![a-z])"
_A = r"(?:/|\bper\b|\ban?\b|\bevery\b|\beach\b|-)\s*"
_HOURLY = (
    rf"{_A}(?:(?:[gt]pu|chip|device|core|accelerator|card)s?[\s-]*(?:{_A})?)?(?:hours?|hrs?|h)\b"
    rf"(?:\s*{_A}(?:[gt]pu|chip|device|core|accelerator|card))?"
)
"""The hour that a price is of: "an hour", "/chip/h", "per GPU-hour"."""
_PAID = re.compile(
    r"\b(?:cost\w*|pric\w+|pay\w*|charg\w+|bill\w*|rent\w*|spend\w*|money|cheap\w*|expensive)\b|\$", re.I
)
_UNITS: tuple[tuple[str, str, float], ...] = (
    (r"(?:tokens?|toks?|tok)\s*(?:/|per|a|each)\s*(?:s|sec|second)\b\s*(?:/|per|a|each)\s*(?:chip"
r"|device|core|gpu|tpu)", "tokens/s/chip", 1),
    (r"(?:tps\s*(?:/|per|a|each)\s*(?:chip|device|core|gpu|tpu)|tgs)\b", "tokens/s/chip", 1),
    (r"(?:(?:tokens?|toks?|tok)\s*(?:/|per|a|each)\s*(?:s|secs?|seconds?)|tps)\b", "tokens/s", 1),
    (rf"{_MONEY}(?:\s*{_HOURLY})?", "$", 1),
    (rf"cents?\b(?:\s*{_HOURLY})?", "$", 0.01),
    (r"(?:ms|msec|milliseconds?)\b", "s", 1e-3),
    (r"(?:µs|us|microseconds?)\b", "s", 1e-6),
    (r"(?:seconds?|secs?|s)\b", "s", 1),
    (r"(?:minutes?|mins?)\b", "s", 60),
    (r"tera[- ]?flop(?:s|/s)?\b|t[- ]?flop(?:s|/s)?\b", "FLOP/s", 1e12),
    (r"p[- ]?flop(?:s|/s)?\b", "FLOP/s", 1e15),
    (r"(?:%|percent\b|per cent\b|pct\b)", "%", 1),
    (r"gib\b", "GiB", 1),
    (r"(?:gb|gigabytes?)\b(?!\s*/\s*s|\s+per\s+s)|(?-i:G)\b(?!/)", "GB", 1),
    (r"(?:x\b|×|times\b|-?fold\b)", "x", 1),
    (r"(?:tokens?|toks?)\b", "tokens", 1),
    (r"(?:chip|device|core|gpu|tpu)[ -]hours?\b", "chip-hours", 1),
    (
        r"(?:chips?|devices?|cores?|gpus?|tpus?)\s*(?:/|per|an?|each|in (?:an?|each))\s*"
        r"(?:node|host|server|machine|box)\b", "other", 1,
    ),
    (r"(?:chips?|devices?|cores?|gpus?|tpus?)\b", "chips", 1),
    (r"slices?\b|pods?\b", "slices", 1),
    (r"(?:nodes?|hosts?|racks?)\b", "nodes", 1),
    (r"(?:steps?|iter(?:ation)?s?)\b(?! of)", "steps", 1),
    (r"(?:wide|hidden|ffn?|intermediate|dim(?:ension)?s?)\b", "other", 1),
    (r"layers?\b", "layers", 1),
    (
        r"experts?\s*(?:/|per|an?|each|on (?:an?|each))\s*(?:chip|device|core|gpu|tpu|rank|node|host|server|machine)\b",
        "other", 1,
    ),
    (r"experts?\b(?! parallel| shard)", "experts", 1),
    (r"(?:micro-?batches)\b", "microbatches", 1),
    (r"(?:seq(?:uence)?s?|samples?)\s*(?:/|per|a|(?:for )?each)\s*(?:chip|device|core|gpu|tpu)\b", "sequences/chip", 1),
    (r"(?:sequences|seqs|samples)\b", "sequences", 1),
    (r"(?:params?|parameters?|bits?)\b", "other", 1),
    (r"(?:days?|weeks?|months?|years?|hours?|hrs?|h|runs?|jobs?)\b", "other", 1),
)  # fmt: skip
_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+,\d{1,2}(?!\d)|\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?"
_NUMBER = re.compile(
    rf"(?P<minus>(?<!\S)[-−])?(?P<money>\$\s*)?(?:(?<![\w.])|(?<=\btop))(?P<digits>{_DIGITS})(?:\s?(?P<scale>k|thousand|m(?=\s+tok|\b(?!s))|million|mio|bn?|billion|tn?|trillion)(?![\w/]))?",
    re.I,
)
_SPELLED = re.compile(
    rf"\b(?P<word>{'|'.join(sorted(_WORDS, key=len, reverse=True))})\s+(?:(?P<scale>thousand"
    rf"|million|billion|trillion)\b)?",
    re.I,
)
_FACTOR = re.compile("|".join(rf"\b(?:{words})\b" for words in _FACTORS), re.I)
_WITH_RESULT = re.compile(r"(?:doubl|tripl|quadrupl|halv)\w*\s+(?:[a-z_-]+\s+){1,4}?(?:up |down )?to\s+\d", re.I)
"""A factor with what it leads to: "double the sequence to 16k"."""
_OLD = re.compile(r"(?:\b(?:instead of|rather than|not|from|than|out of|of the)\s+(?:the )?(?:top-?)?)$", re.I)
_SOME_OF = re.compile(r"\b(?:last|first|top|bottom|initial|final|other|every|some|middle)\s+$", re.I)
"""Before a number of layers: so many of those that there are."""
_AT = re.compile(r"(?:\bat|@)\s*$", re.I)
"""Before a price without its unit: "cost a day at 2.2"."""
_OWNED = re.compile(r"\bvpp[ =]$|\b(?:proposal|option)\s*#?$", re.I)
"""Before a number that is of this, whatever follows: "pp4 vpp 4 layers divide?", "proposal 1 runs out of memory"."""
_SLICES_ARE = re.compile(r"\b(?:slices?|pods?|torus|topology) (?:is|are|was|were)(?: an?| of)? \d", re.I)
_ARROW = re.compile(r"\s*(?:[a-z]+\s+){0,2}(?:-+>|=>|→)\s*\$?\d", re.I)
"""Behind a number and its noun, that it becomes the next one: "8k -> 4k", "2 slices → 4"."""


@dataclass(frozen=True)
class Amount:
    """A number with its unit: ``s``, ``%``, ``x``, ``GiB``, ``GB``, ``tokens/s``, ``$``, ``chips`` …; none is a count.

    ``before`` says that it is what something was, as in "16 instead of 8".
    """

    value: float
    unit: str
    start: int
    end: int
    text: str
    before: bool = False


def amounts(text: str) -> list[Amount]:
    """All amounts of a text, in their order."""
    found: list[Amount] = []
    for match in _NUMBER.finditer(text):
        scale = (match["scale"] or "").lower()
        value = min(_value(match["digits"]) * _SCALES.get(scale, 1), LARGEST_AMOUNT)
        value = -value if match["minus"] else value
        if _of_topology(text, match.start(), match.end()):
            found.append(Amount(value, "other", match.start(), match.end(), match.group().strip()))
            continue
        found.append(_with_unit(text, value, match.start(), match.end(), bool(match["money"]), scale))
    taken = [(amount.start, amount.end) for amount in found]
    for match in _SPELLED.finditer(text):
        word, scale = match["word"].lower(), (match["scale"] or "").lower()
        amount = _with_unit(text, _WORDS[word] * _SCALES.get(scale, 1), match.start(), match.end(), False, scale)
        vague = word in {"a", "an", "half a", "one"} and not scale
        if not vague and (scale or amount.unit) and not _overlaps(amount, taken):
            found.append(amount)
    for match in _FACTOR.finditer(text):
        if _WITH_RESULT.match(text, match.start()):
            continue
        words = next(words for words in _FACTORS if re.fullmatch(words, match.group(), re.I))
        found.append(Amount(_FACTORS[words], "x", match.start(), match.end(), match.group()))
    return _with_unit_of_old(sorted(found, key=lambda amount: amount.start))


def _of_topology(text: str, start: int, end: int) -> bool:
    """Whether a number is a side of a slice: "our slices are 8x16"."""
    beside = re.match(r"\s?[x×]\s?\d", text[end:]) or re.search(r"\d\s?[x×]\s?$", text[:start])
    return beside is not None and _SLICES_ARE.search(text) is not None


def _with_unit_of_old(found: list[Amount]) -> list[Amount]:
    """The amounts, one that another becomes in its unit: "1024 sequences -> 2048"."""
    pairs = zip([None, *found], found, strict=False)
    return [replace(a, unit=old.unit) if old and old.before and old.unit and not a.unit else a for old, a in pairs]


def thousands(amount: Amount) -> int:
    """A count that is written as ``16k``, in the binary sense that sequence lengths have: 16384."""
    if re.search(r"\dk\b|\d\sk\b", amount.text, re.I):
        return round(amount.value / 1000 * 1024)
    return round(amount.value)


def _value(digits: str) -> float:
    if re.fullmatch(r"\d+,\d{1,2}", digits):
        return float(digits.replace(",", "."))
    return float(digits.replace(",", ""))


def _with_unit(text: str, value: float, start: int, end: int, money: bool, scale: str) -> Amount:
    if _OWNED.search(text[:start]):
        return Amount(value, "", start, end, text[start:end].strip())
    before = _OLD.search(text[:start]) is not None or _ARROW.match(text, end) is not None
    if money:
        hourly = re.compile(rf"\s*{_HOURLY}", re.I).match(text, end)
        last = hourly.end() if hourly else end
        return Amount(value, "$", start, last, text[start:last], before)
    rest = re.match(r"[\s-]*", text[end:])
    offset = end + (rest.end() if rest else 0)
    for pattern, unit, factor in _UNITS:
        if match := re.compile(pattern, re.I).match(text, offset):
            unit = "of the layers" if unit == "layers" and _SOME_OF.search(text[:start]) else unit
            return Amount(value * factor, unit, start, match.end(), text[start : match.end()], before)
    hourly = re.compile(rf"\s*{_HOURLY}", re.I).match(text, end)
    if hourly and not scale and (value % 1 or _PAID.search(text)):
        return Amount(value, "$", start, hourly.end(), text[start : hourly.end()], before)
    if value % 1 and not scale and _AT.search(text[:start]) and _PAID.search(text):
        return Amount(value, "$", start, end, text[start:end].strip(), before)
    if scale == "k" and (match := re.compile(r"\s*/\s*s\b", re.I).match(text, end)):
        return Amount(value, "tokens/s", start, match.end(), text[start : match.end()], before)
    unit = "other" if scale == "b" else ""
    return Amount(value, unit, start, end, text[start:end].strip(), before)


def _overlaps(amount: Amount, taken: list[tuple[int, int]]) -> bool:
    return any(amount.start < end and start < amount.end for start, end in taken)
