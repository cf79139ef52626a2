"""A plan that is named in the place of another one: "no, I meant the second", "sorry, 3 not 2"."""

import re
from collections.abc import Sequence

from asap.chat.understanding.quantities.amounts import amounts
from asap.chat.understanding.references.references import references
from asap.plans import Plan

_MENDS = re.compile(
    r"^\W*(?:(?:no|nope|nah|sorry|wait|oops|actually|hang on|hold on|my bad|typo|ah|oh"
    r"|er+|hm+|uh+|um+|argh|ugh)\b[\s,.:;!-]*)+"
    r"|\b(?:i|we) (?:meant?|was (?:asking|talking|thinking) (?:about|of))\b",
    re.I,
)
_NOT = re.compile(
    r"[,;]?\s*(?:\b(?:and )?not|\binstead of|\brather than)\s+(?:the\s+)?(?:[a-z]+\s+)?#?[\w-]+(?:\s+one)?\W*$", re.I
)
"""The plan that was not meant: "3, not 2"."""
_BESIDE = re.compile(
    r"(?:the|one|proposal|option|plan|number|no|first|second|third|1st|2nd|3rd|about|for|with|of|it|that|was|is|meant?|i|we"
    r"|asking|talking|thinking|should|be|two|three|last|please)"
)
"""Words beside the plan that say no more."""


def plan_meant(text: str, order: Sequence[Plan], now: Plan | None) -> Plan | None:
    """The one plan that a line puts in the place of another one; ``None`` where it says anything else.

    Args:
        text: a line.
        order: the proposals that a number is of.
        now: what runs now.

    Raises:
        PlanError: a plan in it is malformed.
    """
    mends = _MENDS.search(text)
    if mends is None:
        return None
    rest = _NOT.sub("", _MENDS.sub(" ", text))
    words = re.findall(r"[a-z]+", rest.lower())
    found = references(rest, order, None, now, amounts(rest), "all")
    named = [mention.plan for mention in found.mentions if mention.way == "rank"]
    alone = len(named) == len(found.mentions) == 1 and all(_BESIDE.fullmatch(word) for word in words)
    return named[0] if alone else None
