"""A limit that holds for another axis as well: "tp stays inside a node, ep too"."""

import re
from collections.abc import Sequence

from asap.evidence.fact import StatedFact
from asap.plans import AXES
from asap.plans.axes import WORDS

_AXIS = r"(?:tp|pp|cp|ep|dp|fsdp)"
_ALIKE = re.compile(
    rf"\W*(?:(?:(?:and|nor|or|same(?: goes)? for|likewise)\W+)+(?P<axis>{_AXIS})"
    rf"(?:\W+(?:neither|either|too|as well))*|(?P<other>{_AXIS})\W+(?:neither|either|too|as well|same))\W*",
    re.I,
)


def alike(parts: Sequence[str], each: Sequence[list[StatedFact]]) -> list[list[StatedFact]]:
    """The limits of each part of a line, with those of the part before where one names no more than another axis."""
    found = [list(limits) for limits in each]
    for place, part in enumerate(parts[1:], 1):
        named = _ALIKE.fullmatch(part)
        if named is None or found[place]:
            continue
        axis = WORDS[(named["axis"] or named["other"]).lower()]
        before = [limit for limit in found[place - 1] if limit.about in AXES and limit.keeps is None]
        found[place] = [limit.model_copy(update={"about": axis}) for limit in before]
    return found
