"""What stands in a sentence: references, plans, citations, names, and numbers with their units."""

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

from asap.core.errors import PlanError
from asap.plans.prose import plan_spans

_SIGNIFICANT = 3  # digits with which the engine prints a figure: zeros behind them are none of its value
SECOND = "s"
SHARE = "share"
RATIO = "ratio"
COUNT = "count"

_PREFIXES = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_LONG_PREFIXES = {"kilo": 1, "mega": 2, "giga": 3, "tera": 4}
_TIMES = {
    SECOND: 1.0, "sec": 1.0, "second": 1.0, "ms": 1e-3, "millisecond": 1e-3, "µs": 1e-6, "μs": 1e-6, "us": 1e-6,
    "microsecond": 1e-6, "ns": 1e-9, "nanosecond": 1e-9, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0,
    "day": 86400.0,
}  # fmt: skip
_COUNTED = (
    "device chip core node host slice token sequence sample layer head expert stage parameter axis microbatch doubling"
)
_RATIOS = ("x", "×", "times", "fold", "multiples")
_SHARES = ("%", "percent", "per cent", "pct", "percentage point", "percentage points", "pp", "points", "point")

UNITS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(_SHARES, (SHARE, 0.01)),
    "‰": (SHARE, 0.001),
    **dict.fromkeys(_RATIOS, (RATIO, 1.0)),
    **{unit: (SECOND, scale) for unit, scale in _TIMES.items()},
    **{f"{unit}s": (SECOND, scale) for unit, scale in _TIMES.items() if len(unit) > 2},
    **dict.fromkeys([f"{name}{plural}" for name in _COUNTED.split() for plural in ("", "s")], (COUNT, 1.0)),
    **dict.fromkeys(("axes", "microbatches"), (COUNT, 1.0)),
    **dict.fromkeys(("tokens/s", "tokens/sec", "tokens/second", "tokens per second"), ("tokens/s", 1.0)),
    **{f"{p}iB": ("bytes", 1024.0**n) for p, n in _PREFIXES.items() if n},
    **{f"{p}B": ("bytes", 1000.0**n) for p, n in _PREFIXES.items()},
    **{f"{p}bytes": ("bytes", 1000.0**n) for p, n in _LONG_PREFIXES.items()},
    **dict.fromkeys(("byte", "bytes"), ("bytes", 1.0)),
    **{f"{p}iB/s": ("bytes/s", 1024.0**n) for p, n in _PREFIXES.items() if n},
    **{f"{p}B{per}": ("bytes/s", 1000.0**n) for p, n in _PREFIXES.items() for per in ("/s", "ps")},
    **{f"{p}{bit}": ("bytes/s", 1000.0**n / 8) for p, n in _PREFIXES.items() if n for bit in ("b/s", "bps", "bit/s")},
    **{f"{p}FLOP{form}": ("FLOP", 1000.0**n) for p, n in _PREFIXES.items() for form in ("", "s")},
    **{f"{p}FLOP{form}": ("FLOP/s", 1000.0**n) for p, n in _PREFIXES.items() for form in ("/s", "s/s", "S")},
}
"""What a unit measures and its size in the base unit of that."""

MAGNITUDES = {"k": 1e3, "K": 1e3, "M": 1e6, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}

_FOLDED = {unit.casefold(): measure for unit, measure in UNITS.items() if len(unit) > 1}
_PER = re.compile(r"/(?:step|device|chip|core|layer|token|iteration|host|node|gpu|tpu|byte|b)s?$", re.IGNORECASE)


def measure(unit: str) -> tuple[str, float] | None:
    """What a unit measures and its size; `ms/step` measures what `ms` does. ``None`` if it is no unit."""
    found = UNITS.get(unit) or _FOLDED.get(unit.casefold())
    if found is None and _PER.search(unit):
        return measure(_PER.sub("", unit))
    return found


CITATION = re.compile(r"\[([A-Za-z0-9][\w.:-]{2,120})\]")
REFERENCE = re.compile(r"\{([^{}\n]{1,300})\}")
_RANK = re.compile(
    r"\b(?:proposal|candidate|option|plan)s? (?:no\. |number |#)?([1-9])\b"
    r"|\b(first|second|third) (?:proposal|candidate|option|plan)\b",
    re.IGNORECASE,
)
_ORDINALS = {"first": "1", "second": "2", "third": "3"}
_LIST = re.compile(r"^\s*(?:\d{1,2}[.)]|[-*•])\s")
_NAME = re.compile(r"[A-Za-z0-9_][\w.=:/-]*")
_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[+\-−])?(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?P<scaled>[kM](?![A-Za-z/])|\s?(?:thousand|million|billion)\b)?"
    r"[\s-]?(?P<unit>per cent\b|percentage points?\b|tokens per second\b|%|‰|×|[A-Za-zµμ]+(?:/[A-Za-z]+)*)?"
)
_ENDS = re.compile(r"(?<=[.!?])(?<!\b\d\.)\s+(?=\S)|\n+")


@dataclass(frozen=True)
class Number:
    """A number as it was written, in the base unit of its dimension, and half of its last digit.

    Args:
        dimension: what its unit measures; empty without a unit.
        noun: the word of a count.
    """

    start: int
    end: int
    value: float
    half_digit: float
    dimension: str
    noun: str


@dataclass(frozen=True)
class Mention:
    """A plan that is named: as axes with degrees, or by its rank."""

    start: int
    end: int
    name: str


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, in order."""
    return [part for part in _ENDS.split(text) if part.strip()]


def plain_digits(text: str) -> str:
    """The words with every digit and sign in its plain form: ``４０ ％``, ``٤٠``."""
    folded = unicodedata.normalize("NFKC", text).replace("٪", "%").replace("٫", ".").replace("٬", ",")
    return "".join(str(unicodedata.decimal(c)) if unicodedata.category(c) == "Nd" else c for c in folded)


def mentions(text: str) -> list[Mention]:
    """Every plan that is named, in order."""
    bare = blank(text, REFERENCE)
    try:
        found = [Mention(start, end, str(plan)) for start, end, plan in plan_spans(bare)]
    except PlanError:
        found = []
    found += [Mention(*one.span(), one[1] or _ORDINALS[one[2].lower()]) for one in _RANK.finditer(bare)]
    return sorted(found, key=lambda one: one.start)


def numbers(text: str, names: Collection[str]) -> tuple[list[Number], bool]:
    """Every number outside of references, plans, citations and known names; and whether digits are left over.

    Args:
        text: in its plain form.
        names: words with digits that may be repeated, in lower case.
    """
    rest = _LIST.sub(lambda found: " " * len(found[0]), blank(blank(text, REFERENCE), CITATION))
    for one in mentions(text):
        rest = rest[: one.start] + " " * (one.end - one.start) + rest[one.end :]
    rest = spare_names(rest, names)
    found = [_number(match) for match in _NUMBER.finditer(rest)]
    for one in found:
        rest = rest[: one.start] + " " * (one.end - one.start) + rest[one.end :]
    return found, any(map(str.isnumeric, rest))


def spare_names(text: str, names: Collection[str]) -> str:
    """The text with blanks for known names."""
    return _NAME.sub(lambda found: " " * len(found[0]) if is_name(found[0], names) else found[0], text)


def is_name(word: str, names: Collection[str]) -> bool:
    """Whether a word with letters and digits is one of the names; a number with its unit never is."""
    word = word.rstrip(".-:/=").lower()
    return word in names and _NUMBER.fullmatch(word) is None


def named(text: str) -> set[str]:
    """Words with letters and digits, in lower case."""
    words = (word.rstrip(".-:/=").lower() for word in _NAME.findall(text))
    return {word for word in words if any(map(str.isdigit, word)) and any(map(str.isalpha, word))}


def blank(text: str, pattern: re.Pattern[str]) -> str:
    """The text with blanks for what matches."""
    return pattern.sub(lambda found: " " * len(found[0]), text)


def _number(match: re.Match[str]) -> Number:
    unit = measure(match["unit"]) if match["unit"] else None
    dimension, scale = unit or ("", 1.0)
    size = MAGNITUDES.get((match["scaled"] or "").strip(), 1.0) * scale
    whole, _, part = match["number"].replace(",", "").partition(".")
    digits = len(part) or -min(len(whole) - len(whole.rstrip("0")), max(len(whole) - _SIGNIFICANT, 0))
    digits = 0 if unit and dimension == "count" else digits
    value = float(match["number"].replace(",", "")) * size
    end = match.end("unit") if unit else match.end("scaled") if match["scaled"] else match.end("number")
    sign = -1.0 if match["sign"] in {"-", "−"} else 1.0
    noun = (match["unit"] or "").lower().rstrip("s") if unit and dimension == "count" else ""
    return Number(match.start(), end, sign * value, 0.5 * 10.0**-digits * size, dimension, noun)
