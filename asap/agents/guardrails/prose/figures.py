"""Figures in prose: every number that somebody wrote, with its unit, and how exact it is.

What is no figure: plans (`data=4 model=4`), citations (`[id]`), names that the tools returned (`v5p-512`), formats and
chips (`bf16`, `v6e`), counts up to three, and that an interval holds 90 %.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from asap.agents.guardrails.prose.number_words import NUMBER_WORDS, proportions, words_to_number
from asap.agents.guardrails.prose.units import COUNT, MAGNITUDES, PROPORTIONS, RATIO, SECOND, measure

UNITLESS = ("number",)
"""Dimension of a number without unit."""

SMALL = 3
"""Counts up to here are a way to speak: there are three proposals."""

CITATION = re.compile(r"\[([A-Za-z0-9][\w.:-]{2,120})\]")
_AXES = "replica|data|seq|model|expert|stage|microbatches|pipeline_repeats|interleave|fsdp|tensor|context|sequence"
_NUMBER = r"(?:\d{1,3}(?:[,'_]\d{3})+(?![\d])|\d+)(?:\.\d+)?|\.\d+"
_UNIT = r"per cent\b|percentage points?\b|%|‰|[×]|[A-Za-zµμ]+(?:/[A-Za-z]+)*"
_SCALED = r"[kKM](?![A-Za-z/])|[\s-]?(?:thousand|million|billion|trillion)\b"
_DIGITS = re.compile(
    rf"(?<![\d.])(?P<sign>(?<![\w)%.])[+\-−])?(?P<number>{_NUMBER})(?:[eE](?P<exponent>[+-]?\d{{1,2}})(?!\d))?(?P<scaled>{_SCALED})?"
    rf"(?P<gap>[\s-]?)(?P<unit>{_UNIT})?(?P<rate>\s+per\s+s(?:ec(?:ond)?)?\b)?"
)
_WORDS = re.compile(rf"(?P<number>{NUMBER_WORDS})[\s-]?(?P<unit>{_UNIT})", re.IGNORECASE)
_FRACTION = re.compile(r"(?<![\w./])(\d+)\s?[/⁄:]\s?(\d+)(?![\w/]|\.\d)")
_TIMES = re.compile(r"(?:\b(?:factor|speed-?up|multiple)s?(?:\s+(?:of|by|to|is))?|(?<!\w)[x×])\s?$", re.IGNORECASE)
_RANGE = re.compile(r"\s{0,9}(?:to|or|of|and|up to|–|—|-|…|\.\.+)\s*", re.IGNORECASE)
_BOUND = re.compile(
    r"\b(?:interval|ranges?|between|from|bounds?|up to|at (?:best|worst|most|least)"
    r"|as (?:much|little|low|high|long|short) as)\b",
    re.IGNORECASE,
)
_NO_FIGURES = re.compile(
    rf"{CITATION.pattern}|https?://\S+|^\s*\d{{1,2}}[.)]\s"
    rf"|\b(?:(?:ici|dcn)_\w+_parallelism|{_AXES})=\d+\b(?!\s?[%‰×]|\s?(?:percent|times)|\.\d)"
    r"|\b90\s?-?\s?%(?=(?:[\s-]+\w+){0,2}[\s-]+intervals?\b)"
    r"|\b(?:bf|fp|int|uint|f|s|u)(?:4|8|16|32|64)\b|\b[1-4]-?[dD]\b|\b[ahbAHB][1-9]00\b|\bv\d[a-z]{0,2}\b"
    r"|\b[zZ]e[rR]o-?[123]\b"
)
_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*")


@dataclass(frozen=True)
class Figure:
    """A number as somebody wrote it: where, in its dimension's base unit, and half of its last digit.

    Args:
        dimensions: what it may measure.
        signed: whether plus or minus was written.
        bound: whether its sentence speaks of an interval.
    """

    text: str
    start: int
    end: int
    value: float
    dimensions: tuple[str, ...]
    half_digit: float
    signed: bool = False
    bound: bool = False


def normal(prose: str) -> str:
    """The words with every digit, fraction and sign in its plain form: `４０ ％`, `½`, `٤٠`."""
    folded = unicodedata.normalize("NFKC", prose).replace("٪", "%").replace("٫", ".").replace("٬", ",")
    return "".join(str(unicodedata.decimal(c)) if unicodedata.category(c) == "Nd" else _numeral(c) for c in folded)


def figures(prose: str, names: Collection[str] = ()) -> list[Figure]:
    """Every figure, in order.

    Args:
        prose: words in their normal form.
        names: words with digits that are no figures, in lower case.
    """
    text = _NO_FIGURES.sub(_blank, prose)
    text = _NAME.sub(lambda found: _blank(found) if _is_name(found[0], names) else found[0], text)
    found = [*_fractions(text), *_in_words(text)]
    taken = {at for one in found for at in range(one.start, one.end)}
    found += [one for one in _numbers(text) if one.start not in taken]
    return _ranges(text, sorted((_in_sentence(one, prose) for one in found), key=lambda one: one.start))


def named(text: str) -> set[str]:
    """Words with letters and digits, in lower case: what may be repeated without being a figure."""
    words = (word.rstrip(".-").lower() for word in _NAME.findall(text))
    return {word for word in words if any(map(str.isdigit, word)) and any(map(str.isalpha, word))}


def _is_name(word: str, names: Collection[str]) -> bool:
    if word.rstrip(".-").lower() not in names:
        return False
    return not any(one.dimensions != UNITLESS and not one.text.endswith("B") for one in _numbers(word))


def _numbers(text: str) -> Iterator[Figure]:
    for found in _DIGITS.finditer(text):
        unit, end = found["unit"], found.end("unit")
        if unit in {"x", "×"} and re.match(r"\s?\d", text[end:]):
            unit = None
        known = measure(unit + "/s" if found["rate"] else unit) if unit else None
        end = found.end("rate" if known and found["rate"] else "unit" if known else "number")
        exponent = int(found["exponent"] or 0)
        decimals = len(found["number"].partition(".")[2]) - exponent
        size = MAGNITUDES.get((found["scaled"] or "").strip(" -"), 1.0)
        dimension, scale = known or ("", 1.0)
        if known is None and _TIMES.search(text[: found.start("number")]):
            dimension = RATIO
        value = float(re.sub("[,'_]", "", found["number"])) * 10.0**exponent * size
        if dimension in {"", COUNT} and value <= SMALL and value.is_integer() and not found["scaled"]:
            continue
        value *= -scale if found["sign"] in {"-", "−"} else scale
        yield Figure(
            text[found.start() : end].strip(),
            found.start(),
            end,
            value,
            (dimension,) if dimension else UNITLESS,
            0.5 * 10.0**-decimals * size * scale,
            bool(found["sign"]),
        )


def _in_words(text: str) -> Iterator[Figure]:
    for found in _WORDS.finditer(text):
        known = measure(found["unit"])
        number, digits = words_to_number(found["number"])
        if known and not (known[0] in {COUNT, SECOND} and number <= SMALL):
            yield Figure(found[0], *found.span(), number * known[1], (known[0],), 0.5 * 10.0**-digits * known[1])
    for start, end, value in proportions(text):
        yield Figure(text[start:end], start, end, value, PROPORTIONS, 0.05 * min(value, 1.0) if value < 1 else 0.05)


def _fractions(text: str) -> Iterator[Figure]:
    for found in _FRACTION.finditer(text):
        if float(found[2]):
            yield Figure(found[0], *found.span(), float(found[1]) / float(found[2]), PROPORTIONS, 0.005)


def _ranges(text: str, found: list[Figure]) -> list[Figure]:
    """In `3 to 5 %` the first number has the unit of the second."""
    for at in range(len(found) - 2, -1, -1):
        first, second = found[at], found[at + 1]
        if first.dimensions == UNITLESS and _RANGE.fullmatch(text[first.end : second.start]):
            unit = re.search(rf"(?:{_UNIT})$", second.text)
            scale = (measure(unit[0]) or ("", 1.0))[1] if unit else 1.0
            found[at] = replace(
                first, value=first.value * scale, half_digit=first.half_digit * scale, dimensions=second.dimensions
            )
    return found


def _in_sentence(figure: Figure, prose: str) -> Figure:
    start = max(prose.rfind(stop, 0, figure.start) for stop in (". ", "; ", "! ", "? "))
    rest = re.search(r"[.;!?]\s|$", prose[figure.end :])
    sentence = prose[max(start, 0) : figure.end + (rest.start() if rest else 0)]
    before, after = prose[: figure.start], prose[figure.end :]
    beside = re.search(r"\d\s?%?\s*(?:to|–|—)\s*$", before) or re.match(r"\s*(?:to|–|—)\s*[+\-−]?\d", after)
    return replace(figure, bound=bool(_BOUND.search(sentence) or beside))


def _numeral(character: str) -> str:
    if unicodedata.category(character) in {"No", "Nl"}:
        return f"{unicodedata.numeric(character):g}"
    return "/" if character == "⁄" else character


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])
