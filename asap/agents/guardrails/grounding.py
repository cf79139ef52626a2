"""What a figure may be resolved to: the values in the answers of tools, and the figures in notes."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from asap.agents.guardrails.prose.figures import UNITLESS, Figure, figures
from asap.agents.guardrails.prose.subjects import PlanTerms, plans_in, terms
from asap.agents.guardrails.prose.units import COUNT, RATIO, SECOND, SHARE
from asap.reports.quantities import is_change, is_written

NUMBER = "number"
_BY_NAME = {
    "_s": SECOND,
    "_bytes": "bytes",
    "bytes_accessed": "bytes",
    "flops": "FLOP",
    "flop_rate": "FLOP/s",
    "bandwidth": "bytes/s",
    "tokens_per_second": "tokens/s",
    "speedup": RATIO,
    "distance": COUNT,
    "doublings": COUNT,
    "occurrences": COUNT,
}
"""What a bare number measures, by the end of its field's name; other fractions are shares, other numbers counts."""

_BY_UNIT = {"s": SECOND, "fraction": SHARE, "1": RATIO}
_PROSE = {"statement", "finding", "advice", "notes", "source", "because", "correlation", "why", "verdict"}
"""Fields in which the engine itself writes text. Names, descriptions and warnings may come from files."""

_PLANS = {"plan", "proposals", "order", "test", "before", "after", "refused"}
FOREIGN = {
    "name", "category", "fact", "value", "words", "description", "warnings", "title", "text", "summary", "alike",
    "shape", "code", "hlo",
}  # fmt: skip
"""Fields whose words come from files that others wrote."""
_DEGREE = re.compile(r"=(\d+)\b")


@dataclass(frozen=True)
class GroundedValue:
    """A value that a tool gave.

    Args:
        place: where it stands.
        bound: whether it is the end of an interval, which may be named as such only.
        plan: the plan that it was predicted for; ``None``: of the run, or nothing says.
        faster: where it compares a plan with what runs now: whether the plan takes less time.
    """

    value: float
    dimension: str
    place: str
    bound: bool = False
    plan: PlanTerms | None = None
    faster: bool | None = None


def resolve(figure: Figure, known: Iterable[GroundedValue]) -> GroundedValue | None:
    """The first known value that reads like the figure when it is written with as many digits."""
    return next(iter(matches(figure, known)), None)


def matches(figure: Figure, known: Iterable[GroundedValue]) -> list[GroundedValue]:
    """All known values that read like the figure."""
    return [one for one in known if _comparable(figure, one) and _reads_like(figure, one)]


def nearest(figure: Figure, known: Iterable[GroundedValue]) -> GroundedValue | None:
    """The known value of the same dimension that is closest."""
    same = [one for one in known if _comparable(figure, one)]
    return min(same, key=lambda one: abs(abs(one.value) - abs(figure.value)), default=None)


def known_values(answer: Any, place: str) -> list[GroundedValue]:
    """Every value in the answer of a tool, with its dimension as unit, name or wording tell it."""
    if isinstance(answer, Mapping):
        if isinstance(answer.get("unit"), str) and "value" in answer:
            return _quantity(answer, place)
        found = [known for key, item in answer.items() for known in _field(str(key), item, f"{place}.{key}")]
        plan = _plan(answer)
        return [replace(one, plan=one.plan or plan) for one in found] if plan else found
    if isinstance(answer, list | tuple):
        return [known for item in answer for known in known_values(item, place)]
    return []


def quoted_values(prose: str, place: str) -> list[GroundedValue]:
    """The figures of a text that may be quoted; in a line that names one plan they are of that plan."""
    found = []
    for line in re.split(r"\n|(?<=[.;])\s", prose):
        plans = {plan for _, _, plan in plans_in(line)}
        plan = next(iter(plans)) if len(plans) == 1 else None
        for one in figures(line):
            faster = one.value < 0 if plan and one.signed and "step time" in line[: one.start] else None
            found += [GroundedValue(one.value, dimension, place, False, plan, faster) for dimension in one.dimensions]
    return found


def _plan(answer: Mapping[str, Any]) -> PlanTerms | None:
    """The plan that the fields of an answer are of."""
    if isinstance(named := answer.get("plan"), str):
        return terms(named) or None
    what = answer.get("what")
    plans = plans_in(what) if isinstance(what, str) else []
    return plans[0][2] if plans and plans[0][0] == 0 else None


def _field(key: str, item: Any, place: str) -> list[GroundedValue]:
    texts = [text for text in (item if isinstance(item, list | tuple) else [item]) if isinstance(text, str)]
    if key in _PLANS:
        return [GroundedValue(float(degree), COUNT, place) for text in texts for degree in _DEGREE.findall(text)]
    if texts and key not in FOREIGN and all(map(is_written, texts)):
        return [known for text in texts for known in _printed(text, place)]
    if key in _PROSE and texts:
        return [known for text in texts for known in quoted_values(text, place)]
    if isinstance(item, bool) or not isinstance(item, int | float):
        return _counts(item, place) if isinstance(item, list | tuple) else known_values(item, place)
    otherwise = SHARE if isinstance(item, float) and abs(item) <= 1 else COUNT
    dimension = next((unit for suffix, unit in _BY_NAME.items() if key.endswith(suffix)), otherwise)
    return _with_readings(GroundedValue(float(item), dimension, place))


def _printed(text: str, place: str) -> list[GroundedValue]:
    """The values of a printed figure; what follows in brackets is its interval."""
    value, _, interval = text.partition("(")
    found = []
    for part, bound in ((value, False), (interval, True)):
        for one in figures(part):
            if is_change(text):
                found += _with_readings(GroundedValue(1 + one.value, RATIO, f"{place}.relative_step_time", bound))
            else:
                found += [GroundedValue(one.value, dimension, place, bound) for dimension in one.dimensions]
    return found


def _counts(items: Iterable[Any], place: str) -> list[GroundedValue]:
    """A list, such as a topology, may hold bare numbers."""
    numbers = [GroundedValue(float(item), COUNT, place) for item in items if isinstance(item, int) and item is not True]
    return numbers + known_values(items, place)


def _quantity(quantity: Mapping[str, Any], place: str) -> list[GroundedValue]:
    unit = str(quantity["unit"])
    dimension = RATIO if "relative" in place else _BY_UNIT.get(unit, unit)
    ends = [name for name in ("low", "high") if isinstance(quantity.get(name), int | float)]
    values = [GroundedValue(float(quantity["value"]), dimension, place)]
    values += [
        GroundedValue(float(quantity[end]), dimension, place, quantity[end] != quantity["value"]) for end in ends
    ]
    return [reading for value in values for reading in _with_readings(value)]


def _with_readings(known: GroundedValue) -> list[GroundedValue]:
    """A ratio is also read as a change: 0.97 is 3 % less, 1.03 times as fast."""
    value = known.value
    if known.place.endswith("relative_step_time") and value != 1:
        known = replace(known, faster=value < 1)
    found = [known]
    if known.dimension == RATIO and value > 0:
        readings = ((1 / value, RATIO), (value, SHARE), (value - 1, SHARE), (1 / value - 1, SHARE))
        found += [replace(known, value=reading, dimension=dimension) for reading, dimension in readings]
    return found


def _comparable(figure: Figure, known: GroundedValue) -> bool:
    if known.bound and not figure.bound:
        return False
    if figure.dimensions != UNITLESS:
        return known.dimension in figure.dimensions
    whole = float(figure.value).is_integer()
    return known.dimension in ({COUNT, NUMBER} if whole else {COUNT, NUMBER, RATIO, SHARE})


def _reads_like(figure: Figure, known: GroundedValue) -> bool:
    if figure.signed and known.dimension in {RATIO, SHARE} and figure.value * known.value < 0:
        return False
    return abs(abs(figure.value) - abs(known.value)) <= figure.half_digit * 1.0001
