"""Steps that are long now and then: "a 12 s step every 50 steps, rest 4.5" has one steady step, of 4.5 s."""

import re
from collections.abc import Sequence

from asap.chat.understanding.quantities.amounts import Amount
from asap.chat.understanding.words.doubt import has

_NOW_AND_THEN = (
    r"(?:(?:every|each)\s+(?:\W|about |around |roughly |so )*(?:\d+(?:th|rd|nd|st)?|few|couple(?: of)?|other|hundred"
    r"|nth|minute|hour|now and then|so often|once in a while)\b"
    r"|(?:now and then|once in a while|from time to time|sometimes|occasional(?:ly)?|periodic(?:ally)?|at times"
    r"|randomly|sporadic(?:ally)?))"
)
_BEHIND = re.compile(
    rf"\s*(?:(?:long|slow|steps?|iter\w*|spikes?|outliers?|hiccups?|stalls?|ones?|or so)\s+)*{_NOW_AND_THEN}",
    re.I,
)
_BEFORE = re.compile(
    rf"(?:{_NOW_AND_THEN}[^\d.,;]{{0,25}}|\b(?:spik\w+|jump\w*|peaks?|outliers?|hiccups?|stalls?)"
    r"(?: \w+)?(?: (?:to|of|at|up to))?\s*(?:\W|about |around )*)$",
    re.I,
)
_WORK = re.compile(r"\b(?:sav(?:e|es|ing)|snapshots?|validation|logging)\b", re.I)
"""Names what comes now and then, beside the words of ``doubt.toml``: no step at all."""
_TIME = {"s"}


def without_sporadic(clause: str, amounts: Sequence[Amount]) -> list[Amount]:
    """The amounts without times that single steps take."""
    return [amount for amount in amounts if not _is_sporadic(clause, amount)]


def sporadic_in(clause: str, amounts: Sequence[Amount]) -> str | None:
    """What is said of times that single steps take; ``None`` where there is none."""
    found = [amount for amount in amounts if _is_sporadic(clause, amount)]
    if not found or has("other_times", clause) or _WORK.search(clause):
        return None
    return (
        f"{found[0].text} is of single steps, so it is not recorded. Long steps at a regular distance come of"
        " checkpoints, evaluation, logging or garbage collection, which no prediction counts. What counts is the step"
        " between them."
    )


def _is_sporadic(clause: str, amount: Amount) -> bool:
    if amount.unit not in _TIME:
        return False
    return _BEHIND.match(clause, amount.end) is not None or _BEFORE.search(clause[: amount.start]) is not None
