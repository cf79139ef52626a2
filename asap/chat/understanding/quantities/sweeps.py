"""One thing over several values: "sweep the batch from 128 to 1024", "microbatches 1, 2, 4, 8"."""

import re

from pydantic import BaseModel, ConfigDict

from asap.chat.understanding.quantities.amounts import Amount, thousands
from asap.chat.understanding.quantities.things import Thing, nearest_thing
from asap.plans.axes import WORDS, Axis

MOST_VALUES = 12

_SWEEPS = re.compile(
    r"\b(?:sweep\w*|vary\w*|varied|scan\w*|range|ranging|plot|curve|step through|function of|depend\w*"
    r"|how (?:does|do|would|will)\b.{0,60}\b(?:change|scale|vary|behave|grow|develop|look)|mov\w+ (?:when|as|if))\b",
    re.I,
)
_NUMBER = r"\d+(?:\.\d+)?(?:\s?k)?(?![\w%.]\d|\s*(?:s|ms|%|x)\b)"
_LIST = re.compile(rf"\b{_NUMBER}(?:\s*(?:,\s*and|,\s*or|,|/|\band\b|\bor\b)\s*{_NUMBER}){{1,}}\b", re.I)
_SPACED = re.compile(rf"\b{_NUMBER}(?:[\s,/]+(?:and\s+|or\s+)?{_NUMBER})+\b", re.I)
_RANGE = re.compile(rf"\b({_NUMBER})\s*(?:to|up to|through|until|till|and|-|–|\.\.+)\s*({_NUMBER})", re.I)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_AXIS = re.compile(rf"\b({'|'.join(sorted(WORDS, key=len, reverse=True))})\b", re.I)
_LEAST_LISTED = 3
"""So many numbers behind a thing are a sweep without a word for it."""


class Sweep(BaseModel):
    """What is varied, and its values in ascending order."""

    model_config = ConfigDict(frozen=True)

    of: Thing | Axis
    values: tuple[int, ...]


def sweep_in(text: str) -> Sweep | None:
    """The sweep that a sentence without written plans asks for; ``None`` if it asks for none."""
    asked = _SWEEPS.search(text) is not None
    listed = None if _THOUSANDS.fullmatch(text) else (_SPACED if asked else _LIST).search(text)
    values, start = _listed(listed.group()) if listed else (), listed.start() if listed else 0
    if len(values) < (2 if asked else _LEAST_LISTED):
        between = _RANGE.search(text) if asked else None
        if between is None:
            return None
        values, start = _doublings(_count(between[1]), _count(between[2])), between.start()
    of = nearest_thing(text, start) or _axis(text)
    values = tuple(sorted(set(values)))[:MOST_VALUES]
    return Sweep(of=of, values=values) if of is not None and len(values) > 1 and values[0] > 0 else None


def _listed(numbers: str) -> tuple[int, ...]:
    """The numbers of a list; thousands with commas are one number each."""
    if _THOUSANDS.fullmatch(numbers):
        return ()
    return tuple(_count(number) for number in re.findall(_NUMBER, numbers, re.I))


def _doublings(first: int, last: int) -> tuple[int, ...]:
    """From the first to the last, each twice the one before."""
    first, last = sorted((first, last))
    values = [first]
    while first > 0 and values[-1] * 2 < last and len(values) < MOST_VALUES - 1:
        values.append(values[-1] * 2)
    return (*values, last)


def _count(number: str) -> int:
    value = float(number.lower().replace("k", "").strip()) * (1000 if "k" in number.lower() else 1)
    return thousands(Amount(value, "", 0, len(number), number))


def _axis(text: str) -> Axis | None:
    found = _AXIS.search(text)
    return WORDS[found[1].lower()] if found else None
