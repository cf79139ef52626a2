"""A plan that another one takes the place of: "data=64 model=4 → data=128 model=2" is of the second."""

import re
from itertools import pairwise

from asap.core.errors import PlanError
from asap.plans.prose import plan_spans

_ARROW = re.compile(r"\W*(?:-+>|=>|→)\W*|\s*,?\s*(?:becomes|turns into|changes? to|goes? to|moves? to)\s+", re.I)


def without_plan_before(text: str) -> str:
    """The text without each written plan before an arrow to another one; a malformed plan is left to its reader."""
    try:
        spans = plan_spans(text)
    except PlanError:
        return text
    for (start, end, _), (follows, _, _) in reversed(list(pairwise(spans))):
        if _ARROW.fullmatch(text[end:follows]):
            text = text[:start] + text[follows:]
    return text
