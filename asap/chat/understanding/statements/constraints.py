"""What cannot be changed or used: "we cannot change the batch", "model=1 is impossible", "no pipeline for us"."""

import re

from asap.chat.evidence.claims import Claim
from asap.chat.evidence.fact import StatedFact
from asap.chat.understanding.references.references import References
from asap.plans.axes import Axis, axis_of

_FIXED = re.compile(
    r"\b(?:can ?not|can't|must not|may not|mustn't|(?:are|is|am) not (?:allowed|able) to|unable "
    r"to)\s+(?:be\s+)?(?:\w+\s+)?"
    r"(?:chang\w*|touch\w*|alter\w*|modif\w*|increas\w*|rais\w*|mov\w+|vary|varied|adapt\w*)\b"
    r"|\b(?:must|has to|have to|needs? to|should)\s+(?:be\s+)?(?:stay|remain|keep|kept|be left)\b"
    r"|\b(?:is|are|stays?) (?:fixed|set in stone|given|frozen|constant|non-negotiable)\b",
    re.I,
)
_RULED_OUT = re.compile(
    r"\b(?:impossible|off the table|not an option|no option|ruled out|out of the question|forbidden"
    r"|not (?:allowed|possible|available|supported)"
    r"|can ?not (?:use|do|run|have)|can't (?:use|do|run|have)|cannot be used|no go|must not "
    r"use|not permitted|won't work for us|is excluded)\b",
    re.I,
)
_TERM = re.compile(r"([a-z][\w.]*)\s*[=:]\s*(\d{1,6})\b", re.I)
_THINGS = {
    "batch": r"\bbatch\w*|\bgbs\b", "sequence": r"\bsequences?\b|\bcontext\b",
    "hardware": r"\bhardware|\bchips?\b|\bslices?\b", "optimizer": r"\boptimi[sz]er|\badam\w*",
    "precision": r"\bprecision|\bbf16|\bfp8|\bint8|\bquanti", "model": r"\blayers\b|\barchitecture",
    "remat": r"\bremat\w*|\bcheckpointing",
}  # fmt: skip


def constraint_in(clause: str, refs: References) -> StatedFact | None:
    """The constraint that a clause states; ``None`` if it states none."""
    if _RULED_OUT.search(clause) and (named := _degree(clause)) is not None:
        return StatedFact(claim=Claim.CONSTRAINT, about=named[0], value=float(named[1]), words=clause)
    if _RULED_OUT.search(clause) and refs.wish is not None:
        return StatedFact(claim=Claim.CONSTRAINT, about=refs.wish.axis, words=clause)
    if _RULED_OUT.search(clause) or _FIXED.search(clause):
        thing = next((thing for thing, words in _THINGS.items() if re.search(words, clause, re.I)), None)
        if thing is not None:
            return StatedFact(claim=Claim.CONSTRAINT, about=thing, words=clause)
    return None


def _degree(clause: str) -> tuple[Axis, int] | None:
    """The one axis that is named with a degree: ``model=1``."""
    named = [(axis_of(key), int(degree)) for key, degree in _TERM.findall(clause)]
    axes: list[tuple[Axis, int]] = [(place[1], degree) for place, degree in named if place is not None]
    return axes[0] if len(axes) == 1 else None
