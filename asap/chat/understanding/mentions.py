"""What a message refers to: plans in any usual spelling, proposals by number, a direction, what runs now."""

import re
from collections.abc import Sequence
from typing import get_args

from asap.plans import Plan
from asap.plans.axes import WORDS, Axis
from asap.plans.prose import plans_written, without_plans

_ORDINALS = {"first": 1, "second": 2, "third": 3, "one": 1, "two": 2, "three": 3, "1st": 1, "2nd": 2, "3rd": 3}
_UNIT = r"(?:ms|s|sec|seconds?|percent|x|times|GiB|GB)"
_MEASURE = rf"(?:{_UNIT}|tokens|chips|devices|runs?|days?|hours?|years?|minutes?)"
_NUMBERED = re.compile(
    rf"(?:(?:proposals?|options?|plans?|numbers?|candidates?|no\.?)\s*#?\s*|#)(\d{{1,2}})\b(?!\s*{_UNIT}\b|\s*%|\.\d)",
    re.I,
)
_FOLLOWING = re.compile(rf"\s*(?:,|and|or|vs\.?|versus|&|with|to)\s*#?(\d{{1,2}})\b(?!\s*{_MEASURE}\b|[\d.%])", re.I)
_BARE = re.compile(rf"(?<![\w=.:-])([1-9])\b(?![.\d]*\d|\s*{_MEASURE}\b|\s*%)", re.I)
_NAMED = re.compile(
    r"\b(first|1st|second|2nd|third|3rd)(?=\s+(?:one|proposal|option|plan|candidate)\b)|\bthe\s+(second|2nd|third|3rd)\b",
    re.I,
)
_SPELLED = re.compile(r"\b(?:proposal|option|number|plan)\s+(one|two|three)\b", re.I)
_OTHERS = re.compile(r"\bthe\s+(?:other|remaining)\s*(?:two|ones?|proposals?|options?|plans?)?", re.I)
_POINTING = re.compile(
    r"\b(?:that|this)\s+(?:one|plan|proposal|option|candidate|config\w*|sharding|mesh|layout|setup)\b|\b(?:it|its)\b"
    r"|\b(?:that|this)\s*(?:$|[?.!,:]|\s(?=(?:ran|runs|oom|crash|fail|was|took|takes|measur|went|died|did|fit|gave|hung"
    r"|hit|is|one|into|to)\w*))",
    re.I,
)
_NOW = re.compile(
    r"\b(?:incumbent|baseline|what (?:we|i) (?:run|have)|what runs now"
    r"|(?:current|present|running|existing) (?:plan|run|one|sharding|mesh|config\w*))\b",
    re.I,
)
_MUCH = (
    r"(?:more|higher|bigger|increas\w+|pure|only|just|full|use|using|do|try|add\w*|less|lower|fewer|smaller|without|no|not"
    r"|drop(?:ping)?|reduc\w+|the|of)"
)
_DIRECTION = re.compile(
    rf"(?:\b{_MUCH}\s+)*"
    r"\b(tensor|model|data|sequence|context|expert|pipeline|replica\w*|fsdp)(?:\s+|-)(?:parallel\w*|stages?|axis|sharding)"
    rf"|(?:\b{_MUCH}\s+)+(fsdp|tp|pipelining|dp)\b",
    re.I,
)
_LESS = re.compile(r"\b(?:less|lower|fewer|smaller|without|no|drop\w*|reduc\w+)\b", re.I)
_EVERYTHING = re.compile(r"\b(?:pure|only|just|full)\b", re.I)


def numbers_mentioned(text: str, count: int, bare: bool) -> list[int]:
    """Ranks of proposals that are mentioned, in their order.

    Args:
        text: a message.
        count: how many proposals there are.
        bare: whether a lone digit is one, as in "compare 1 and 3".
    """
    rest = without_plans(text)
    found: list[tuple[int, int]] = []
    for match in _NUMBERED.finditer(rest):
        found.append((match.start(1), int(match[1])))
        position = match.end()
        while following := _FOLLOWING.match(rest, position):
            found.append((following.start(1), int(following[1])))
            position = following.end()
    for match in [*_NAMED.finditer(rest), *_SPELLED.finditer(rest)]:
        found.append((match.start(), _ORDINALS[next(filter(None, match.groups())).lower()]))
    if bare:
        found += [(match.start(1), int(match[1])) for match in _BARE.finditer(rest)]
    if _OTHERS.search(rest):
        found += [(len(rest), number) for number in range(2, count + 1)]
    numbers = (number for _, number in sorted(found))
    return list(dict.fromkeys(numbers))


def plans_mentioned(
    text: str, standing: Sequence[Plan], focus: Plan | None, incumbent: Plan | None, bare: bool = False
) -> list[Plan]:
    """Whole plans that a message is about: written out, by number, by pointing, or what runs now.

    Raises:
        PlanError: a plan is malformed.
    """
    numbers = numbers_mentioned(text, len(standing), bare)
    found = plans_written(text) + [standing[n - 1] for n in numbers if 0 < n <= len(standing)]
    if incumbent is not None and _NOW.search(text):
        found.append(incumbent)
    if not found and not numbers and focus is not None and _POINTING.search(text):
        found.append(focus)
    return list(dict.fromkeys(found))


def direction(text: str) -> tuple[Axis, str] | None:
    """An axis that is named without a degree, and whether ``more``, ``less`` or ``only`` of it is asked for."""
    match = _DIRECTION.search(without_plans(text))
    if match is None:
        return None
    name = next(filter(None, match.groups())).lower()
    name = "stage" if name == "pipelining" else "replica" if name.startswith("replica") else WORDS[name]
    sense = "only" if _EVERYTHING.search(match.group()) else "less" if _LESS.search(match.group()) else "more"
    axes: tuple[Axis, ...] = get_args(Axis)
    return next((axis, sense) for axis in axes if axis == name)
