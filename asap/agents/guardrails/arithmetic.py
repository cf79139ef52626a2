"""Figures that follow from others: equations that are written out, and differences of two predictions."""

import re
from collections.abc import Callable, Iterable

from asap.agents.guardrails.grounding import GroundedValue
from asap.agents.guardrails.prose.figures import Figure
from asap.agents.guardrails.prose.units import SECOND, measure

_NUMBER = r"\d{1,3}(?:,\d{3}){1,6}(?:\.\d{1,12})?|\d{1,18}(?:\.\d{1,12})?"
_TERM = rf"(?:{_NUMBER})(?:\s?[A-Za-z%]{{1,20}}(?:/[A-Za-z]{{1,20}})?)?"
_SUM = rf"{_TERM}(?:\s{{0,3}}[×x*·/÷+−-]\s{{0,3}}{_TERM}){{1,12}}"
_EQUATION = re.compile(rf"(?P<left>{_SUM})\s*=\s*(?P<value>{_TERM})|(?P<value2>{_TERM})\s*=\s*(?P<right>{_SUM})")
_PART = re.compile(rf"(?P<sign>[×x*·/÷+−-])?\s{{0,9}}(?P<number>{_NUMBER})(?:\s?(?P<unit>[A-Za-z%]+(?:/[A-Za-z]+)?))?")
_OF_UNITS = {10.0, 60.0, 100.0, 1000.0, 1024.0, 3600.0}
_SMALL = 3
_DIFFERENCE = re.compile(
    r"\b(?:sav\w+|less|more|faster|slower|longer|shorter|differ\w*|gap|gain\w*|cuts?|reduc\w+|adds?|extra|fewer|ahead|behind)\b",
    re.IGNORECASE,
)


def without_equations(prose: str, resolves: Callable[[float, float, str | None], bool]) -> str:
    """The prose with spaces for equations that are right and whose operands resolve.

    Args:
        prose: words in their normal form.
        resolves: whether a number, with half of its last digit and its unit, is known.
    """

    def keep_or_blank(found: re.Match[str]) -> str:
        total = found["value"] or found["value2"]
        parts = list(_PART.finditer(found["left"] or found["right"]))
        result = _number(_PART.match(total))
        if result is None or not all(_is_known(part, resolves) for part in parts):
            return found[0]
        value = _evaluated(parts)
        return " " * len(found[0]) if value is not None and abs(value - result[0]) <= result[1] * 1.0001 else found[0]

    return _EQUATION.sub(keep_or_blank, prose)


def difference(figure: Figure, sentence: str, known: Iterable[GroundedValue]) -> bool | None:
    """Whether a figure is the difference of a prediction and what runs now, and if so whether it is less with the plan.

    ``None``: it is no such difference, or the sentence does not speak of one.
    """
    if SECOND not in figure.dimensions and "bytes" not in figure.dimensions:
        return None
    if not _DIFFERENCE.search(sentence):
        return None
    values = [one for one in known if one.dimension in figure.dimensions and not one.bound]
    for one in (value for value in values if value.plan is not None):
        for now in (value for value in values if value.plan is None and _field(value) == _field(one)):
            if one.value != now.value and abs(abs(one.value - now.value) - figure.value) <= figure.half_digit * 1.0001:
                return one.value < now.value
    return None


def _field(known: GroundedValue) -> str:
    return known.place.rpartition(".")[2].removesuffix("_s")


def _is_known(part: re.Match[str], resolves: Callable[[float, float, str | None], bool]) -> bool:
    number = _number(part)
    if number is None:
        return False
    return number[0] <= _SMALL or number[0] in _OF_UNITS or resolves(*number, part["unit"])


def _number(part: re.Match[str] | None) -> tuple[float, float] | None:
    """Value and half of the last digit, in the base unit where it has one."""
    if part is None or len(part["number"]) > 18:
        return None
    text = part["number"].replace(",", "")
    unit = measure(part["unit"]) if part["unit"] else None
    scale = unit[1] if unit else 1.0
    return float(text) * scale, 0.5 * 10.0 ** -len(text.partition(".")[2]) * scale


def _evaluated(parts: list[re.Match[str]]) -> float | None:
    """Products first, then sums."""
    sums: list[float] = []
    for part in parts:
        value = (_number(part) or (0.0, 0.0))[0]
        match part["sign"]:
            case "/" | "÷":
                if not value:
                    return None
                sums[-1] /= value
            case "×" | "x" | "*" | "·" if sums:
                sums[-1] *= value
            case "-" | "−":
                sums.append(-value)
            case _:
                sums.append(value)
    return sum(sums)
