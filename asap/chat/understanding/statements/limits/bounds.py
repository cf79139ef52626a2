"""How far a degree may go: "cp at most 4", "tp cannot go below 8", "no more than 4 pipeline stages"."""

import re
from dataclasses import dataclass
from typing import Literal

from asap.plans.axes import WORDS, Axis, axis_of

Sense = Literal["least", "most"]
_NOT = (
    r"(?:can ?not|can't|must not|mustn't|may not|should(?: not|n't)|won't|never"
    r"|(?:do(?: not|n't) want|rather not|prefer not|not (?:willing|keen|going|happy|planning))(?: to)?)"
)
_SENSES: tuple[tuple[Sense, re.Pattern[str]], ...] = (
    (
        "least",
        re.compile(
            rf"\bat (?:the )?(?:very )?least\b|\b(?:no|not|never) (?:less|lower|smaller|fewer)\b"
            r"|\b(?:no|not) (?:below|under)\b"
            rf"|\bmin(?:imum)?\b|\b{_NOT} (?:go|be|drop|get|fall)\w* (?:below|under|lower|less|smaller)\b"
            rf"|\b(?:{_NOT}|no) (?:[a-z]+ ){{0,3}}?(?:below|under|lower than|less than)\b"
            r"|\bdown to\b|\bor (?:more|higher|larger|bigger|above|up)\b",
            re.I,
        ),
    ),
    (
        "most",
        re.compile(
            r"\bat (?:the )?(?:very )?most\b|\b(?:no|not|never) (?:more|higher|larger|bigger)\b"
            r"|\b(?:no|not) (?:above|over)\b"
            rf"|\bmax(?:imum)?\b|\b{_NOT} (?:go|be|get|grow)\w* (?:above|over|beyond|past|higher|more|larger)\b"
            rf"|\b(?:{_NOT}|no) (?:[a-z]+ ){{0,3}}?(?:above|over|beyond|past|higher than|more than)\b"
            rf"|\b{_NOT} exceed\b|\bup to\b|\bor (?:less|lower|smaller|fewer|below)\b",
            re.I,
        ),
    ),
)
"""The first that a clause says counts: "down to 4 at most" is the least."""
_AXIS = re.compile(
    r"(?<![\w=-])(?P<name>tensor|pipeline|tp|pp|ep|cp|dp|fsdp"
    r"|(?:model|data|context|sequence|experts?)(?=[- ]?(?:parallel\w*|axis|degree|shard\w*)))(?![a-z])",
    re.I,
)
_DEGREE = re.compile(
    r"(?<![\w.])(?:[a-z]+\s*=\s*|(?:tp|pp|ep|cp|dp|fsdp))?(?P<degree>\d{1,5})(?=[- ]?way\b|\W*$|[,;:!)]|\.\s"
    r"|\s+(?:or|and|but|not|at|for|here|please|on|in|because|since|due|ranks?|stages?|max\w*|min\w*|tops|tensor|pipeline|tp|pp|ep|cp"
    r"|dp|fsdp)\b)",
    re.I,
)
"""A number that nothing else is counted by."""
_COMPARED = re.compile(r"(?<![\w=-])(?P<name>[a-z]+)\s*(?P<sign>>=|<=|≥|≤|>|<)\s*(?P<degree>\d{1,5})(?![\d.])", re.I)
"""A bound in signs: ``tp>=4``."""
_VERB = r"(?:use|do|run|have|go|want|need|support|set|try|afford|show|me|suggest|propose|consider|to|with|any|allow)"
_DENIED_BEFORE = re.compile(
    rf"\b(?:no|not|without|avoid\w*|never|can ?not|(?:ca|wo|do|must|should)n't)\s+(?:{_VERB}\s+){{0,3}}$", re.I
)
_DENIED_AFTER = re.compile(
    r"^\s*(?:(?:is|are|was|just|simply|always|still|also)\s+)*"
    r"(?:impossible|broken|out\b|off the table|forbidden|unsupported|unavailable|no go|(?:oom|hang|fail)s?\b"
    r"|crash\w*|dies\b|(?:not|isn't|aren't)\b|(?:(?:do|does|wo)n't|(?:does|do|will) not) (?:work|fit|run))",
    re.I,
)
"""What is in signs is what cannot be: "we can't use tp>4", "tp>4 hangs"."""


@dataclass(frozen=True)
class Bound:
    """The least or the most that the degree of an axis may be."""

    axis: Axis
    degree: int
    sense: Sense


def sense_of(clause: str) -> Sense | None:
    """Whether a clause sets a least or a most."""
    return next((sense for sense, words in _SENSES if words.search(clause)), None)


def bound_in(clause: str) -> Bound | None:
    """The bound that a clause sets; ``None`` if it names no single axis, degree and direction."""
    if (compared := _COMPARED.search(clause)) and (place := axis_of(compared["name"].lower())) is not None:
        before, after = clause[: compared.start()], clause[compared.end() :]
        denied = _DENIED_BEFORE.search(before) is not None or _DENIED_AFTER.match(after) is not None
        return _in_signs(place[1], compared["sign"], int(compared["degree"]), denied=denied)
    axes: set[Axis] = {WORDS[found["name"].lower()] for found in _AXIS.finditer(clause)}
    degrees = {int(found["degree"]) for found in _DEGREE.finditer(clause)}
    sense = sense_of(clause)
    if sense is None or len(axes) != 1 or len(degrees) != 1:
        return None
    return Bound(axes.pop(), degrees.pop(), sense)


def _in_signs(axis: Axis, sign: str, degree: int, *, denied: bool) -> Bound:
    """The bound, or where it is denied its opposite: what is not above 4 is at most 4."""
    above, strict = sign in {">", ">=", "≥"}, sign in {">", "<"}
    if denied:
        above, strict = not above, not strict
    beyond = (1 if above else -1) if strict else 0
    return Bound(axis, degree + beyond, "least" if above else "most")
