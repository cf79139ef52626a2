"""What stands in a sentence: references, plans, citations, names, and numbers with their units."""

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

from asap.agents.grounding.units import MAGNITUDES, measure
from asap.core.errors import PlanError
from asap.plans.prose import plan_spans

CITATION = re.compile(r"\[([A-Za-z0-9][\w.:-]{2,120})\]")
REFERENCE = re.compile(r"\{([^{}\n]{1,300})\}")
_RANK = re.compile(r"\b(?:proposal|candidate|option|plan)s? (?:no\. |number |#)?([1-9])\b", re.IGNORECASE)
_LIST = re.compile(r"^\s*(?:\d{1,2}[.)]|[-*•])\s")
_NAME = re.compile(r"[A-Za-z0-9_][\w.=:/-]*")
_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[+\-−])?(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?P<scaled>[kM](?![A-Za-z/])|\s?(?:thousand|million|billion)\b)?"
    r"[\s-]?(?P<unit>per cent\b|percentage points?\b|%|‰|×|[A-Za-zµμ]+(?:/[A-Za-z]+)*)?"
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
    found += [Mention(*match.span(), match[1]) for match in _RANK.finditer(bare)]
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
    rest = _NAME.sub(lambda found: " " * len(found[0]) if is_name(found[0], names) else found[0], rest)
    found = [_number(match) for match in _NUMBER.finditer(rest)]
    for one in found:
        rest = rest[: one.start] + " " * (one.end - one.start) + rest[one.end :]
    return found, any(map(str.isnumeric, rest))


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
    digits = len(match["number"].partition(".")[2])
    value = float(match["number"].replace(",", "")) * size
    end = match.end("unit") if unit else match.end("scaled") if match["scaled"] else match.end("number")
    sign = -1.0 if match["sign"] in {"-", "−"} else 1.0
    noun = (match["unit"] or "").lower().rstrip("s") if unit and dimension == "count" else ""
    return Number(match.start(), end, sign * value, 0.5 * 10.0**-digits * size, dimension, noun)
