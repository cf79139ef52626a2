"""Figures that are set against others or stand behind a step, whose unit is left out: "10.2 s? we got 7.9"."""

import re

from asap.chat.understanding.quantities.amounts import amounts

_BARE = (
    r"(?![.,]?\d|[\w%=]|\s*(?:%|"
    r"(?:ms|s|secs?|seconds?|minutes?|x|times|percent|k|m|tokens?|tok|gi?b|steps?|chips?)\b))"
)
"""Behind a number without a unit."""
_STEP_OF = re.compile(
    r"\b(?:step(?: time)?|(?:the|our) (?:run|baseline))\s+(?:is|was|takes|took)\s+"
    r"(?:(?:really|actually|now|about|only|around|more like)\s+)*"
    rf"\d+\.\d+{_BARE}",
    re.I,
)
"""A step without a unit: "our step is really 36.4"."""
_SEEN = r"(?:measured?|clock(?:ed)?|took|got|gets?|see|saw|read|is really|was really|really|actually)"
_SET_AGAINST = re.compile(
    rf"\d(?:[\d.,]*\d)?\s?(?P<unit>ms|s|secs?|seconds?|GiB|GB|%)(?![\w/])(?P<name>\s+(?:mfu|hbm|memory)\b)?"
    rf"[^\d]*\b{_SEEN}\s+(?:(?:it|at|about|only|just|more like)\s+)*"
    rf"\d+(?:\.\d+)?{_BARE}",
    re.I,
)
_MEASURED = re.compile(rf"[,;]?\s*(?:,|;|\band\b|\bwhile\b)\s+(?=(?:we|i)\s+(?:\w+ )?{_SEEN}\b)", re.I)


def with_units(text: str) -> str:
    """The text with units that are left out: of a step, and of a figure beside another one, "10.2 s? we got 7.9"."""
    text = _STEP_OF.sub(lambda found: f"{found.group()} s", text)
    return _SET_AGAINST.sub(lambda found: f"{found.group()} {found['unit']}{found['name'] or ''}", text)


def said_and_measured(part: str) -> tuple[str, ...]:
    """A figure that is quoted and the one that was measured, by themselves."""
    found = _MEASURED.search(part)
    quoted = found is not None and any(one.unit for one in amounts(part[: found.start()]))
    return (part[: found.start()], part[found.end() :]) if found and quoted else (part,)
