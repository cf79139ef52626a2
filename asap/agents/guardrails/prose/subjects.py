"""Whose figure it is: the plans that a figure in prose stands beside."""

import re
from collections.abc import Mapping, Sequence

PlanTerms = frozenset[str]
"""A plan as the set of its ``axis=degree``."""

PLAN = re.compile(r"\b\w+=\d+(?:[\s,;]+\w+=\d+)*")
_RANKED = re.compile(
    r"\b(?:proposal|option|plan|candidate)\s*#?(\d)\b|\b(?:the\s+)?(first|second|third)\s+(?:proposal|option|plan|candidate|one)\b",
    re.IGNORECASE,
)
_ORDINALS = {"first": 1, "second": 2, "third": 3}
_STOP = re.compile(r"(?<=[.;!?])\s+|\n")


def terms(plan: str) -> PlanTerms:
    """A plan in its text form, whatever the order of its axes."""
    return frozenset(re.findall(r"\w+=\d+", plan))


def plans_in(text: str, ranks: Mapping[int, PlanTerms] | None = None) -> list[tuple[int, int, PlanTerms]]:
    """Start, end and plan of each mention, in order.

    Args:
        text: prose.
        ranks: plans of the proposals by number.
    """
    found = [(run.start(), run.end(), terms(run[0])) for run in PLAN.finditer(text)]
    for run in _RANKED.finditer(text):
        number = int(run[1]) if run[1] else _ORDINALS[run[2].lower()]
        if ranks and number in ranks:
            found.append((run.start(), run.end(), ranks[number]))
    return sorted(found, key=lambda mention: mention[0])


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the sentence of a place begins and ends."""
    stops = [stop.span() for stop in _STOP.finditer(text)]
    return (
        max((after for _, after in stops if after <= start), default=0),
        min((before for before, _ in stops if before >= end), default=len(text)),
    )


def subjects(
    place: tuple[int, int],
    prose: str,
    mentions: Sequence[tuple[int, int, PlanTerms]],
    figures: Sequence[tuple[int, int]],
    about: PlanTerms | None,
) -> frozenset[PlanTerms] | None:
    """The plans that a figure may be of; ``None`` where nothing says which.

    In a sentence it is the plans named right before it, with no other figure between, and the one named next. In a
    sentence without a plan it is the plan that was named last, else the one that the paragraph is about.
    """
    start, end = place
    left, right = sentence_around(prose, start, end)
    here = [mention for mention in mentions if left <= mention[0] < right]
    before = [mention for mention in here if mention[1] <= start]
    after = [mention for mention in here if mention[0] >= end]
    if not here:
        earlier = [mention[2] for mention in mentions if mention[1] <= left]
        known = earlier[-1] if earlier else about
        return None if known is None else frozenset({known})
    group = after[:1]
    if before:
        group = [*group, before[-1]]
        between = [at for at, _ in figures if at < before[-1][0]]
        since = max(between, default=left)
        group += [mention for mention in before if mention[0] > since]
    return frozenset(mention[2] for mention in group) | ({about} if about and not before else set())
