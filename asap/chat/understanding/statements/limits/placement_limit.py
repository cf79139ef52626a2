"""An axis that is to stay inside a node: "no ep across nodes", "tp off nvlink is a no-go"."""

import re

from asap.chat.understanding.references.partial_plan import named_axes
from asap.chat.understanding.references.references import References
from asap.chat.understanding.words.worth import axes_in_short
from asap.evidence.claims import Claim
from asap.evidence.fact import StatedFact
from asap.plans.axes import WORDS, Axis
from asap.study.study import Study

_NODE = (
    r"(?:nodes?|hosts?|servers?|machines?|box(?:es)?|slices?|pods?|nvlink(?: domain)?|nvswitch|ib|infiniband|roce"
    r"|(?:the )?dcn)\b"
)
_BEYOND = re.compile(
    r"\b(?:across|between|over|cross\w*|span\w*|beyond|outside|off|leav\w+)\s+(?:of\s+)?"
    rf"(?:(?:the|a|one|any|our|more than one|several|multiple|two)\s+)*{_NODE}|\b(?:inter|cross|multi)[- ]?nodes?\b",
    re.I,
)
_INSIDE = re.compile(
    r"\b(?:inside|within|in|on|intra)[- ]+(?:(?:the|a|one|any|our|each|single|same)\s+)*"
    r"(?:nodes?|hosts?|servers?|machines?|box|slice|pod|nvlink(?: domain)?)\b",
    re.I,
)
_DENIED = re.compile(
    r"\b(?:no|not|never|without|avoid\w*|can ?not|nothing|hate|forbidden|impossible|banned|out of the question"
    r"|off the table|ruled out|no[- ]?go|non-?starter)\b|n't\b|\bnogo\b",
    re.I,
)
_KEPT = re.compile(r"\b(?:keep|only|must|ha(?:s|ve) to|needs? to|stays?|should)\b(?![^.?!]*\b(?:not|never)\b)", re.I)
_LONG = re.compile(
    r"\b(?:(tensor|expert|context|pipeline|sequence|data|model)(?:[- ]?parallel\w*|[- ]axis|[- ]shard\w*)|(experts))\b",
    re.I,
)


def placement_limit_in(clause: str, refs: References, study: Study) -> StatedFact | None:
    """The limit that a clause sets; ``None`` if it names no single axis, or the hardware is not on record."""
    denied = _BEYOND.search(clause) is not None and _DENIED.search(clause) is not None
    kept = _INSIDE.search(clause) is not None and _KEPT.search(clause) is not None and not _DENIED.search(clause)
    axes = _axes(clause, refs)
    if study.slice is None or len(axes) != 1 or not (denied or kept):
        return None
    scaleup = study.slice.chip.scaleup
    domain = float(scaleup.domain) if scaleup is not None else None
    return StatedFact(claim=Claim.CONSTRAINT, about=axes.pop(), value=domain, bound="inside", words=clause)


def _axes(clause: str, refs: References) -> set[Axis]:
    long: set[Axis] = {WORDS[(found[1] or found[2]).lower()] for found in _LONG.finditer(clause)}
    written: set[Axis] = {axis for plan in refs.written for axis in named_axes(plan)}
    return long | written | set(axes_in_short(clause))
