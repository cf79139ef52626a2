"""Whether two readings of a line say the same of a plan, or cannot both be meant."""

import math
import re

from asap.evidence.claims import Claim
from asap.evidence.fact import StatedFact

OPPOSITES = {
    frozenset({Claim.OUT_OF_MEMORY, Claim.FITS}),
    frozenset({Claim.FAILED, Claim.FITS}),
    frozenset({Claim.SLOWER, Claim.FASTER}),
}
TOLERANCE = 1e-3
"""Within which two readings of a figure are one."""

_SPACE = re.compile(r"\s+")


def flat(text: str) -> str:
    """A text in lower case with single spaces and straight quotes."""
    return _SPACE.sub(" ", text.replace("’", "'")).strip().lower()


def contradict(one: StatedFact, other: StatedFact) -> bool:
    """Whether two readings of a line cannot both be meant: one figure twice, or two outcomes of one plan."""
    same_claim, same_plan = one.claim is other.claim, one.plan == other.plan
    if one.value is not None and other.value is not None:
        same_value = math.isclose(one.value, other.value, rel_tol=TOLERANCE)
        return not agree(one, other) and ((same_claim and (same_plan or same_value)) or same_value)
    if same_plan:
        return frozenset({one.claim, other.claim}) in OPPOSITES
    return same_claim and flat(one.words) == flat(other.words)


def agree(one: StatedFact, other: StatedFact) -> bool:
    """Whether two facts say the same, within rounding."""
    same = (one.claim, one.plan, one.about) == (other.claim, other.plan, other.about)
    if one.value is None or other.value is None:
        return same and one.value == other.value
    return same and math.isclose(one.value, other.value, rel_tol=TOLERANCE)
