"""A figure that was measured and has no unit, "now we get 8.9": asked about, and taken with the unit that follows."""

import re

from asap.chat.understanding.quantities.amounts import amounts
from asap.plans.prose import without_plans

_WHOSE = re.compile(
    r"\b(?:(?:with|for|on|of|in|at|by)\s+)?(?:the\s+)?(?:(?:proposal|option|plan|number|no\.|#)\s*#?\d\b"
    r"|(?:first|second|third)(?:\s+(?:one|proposal|option|plan))?|baseline|current(?:\s+\w+)?|new\s+\w+)",
    re.I,
)
_FIGURE = re.compile(
    r"\W*(?:(?:and|so|ok(?:ay)?|now|today|here|then|fyi|btw|update|just|actually|still|only|it|that|this|we|i|our|my|ours"
    r"|the|run|one|job)\b\W*)*"
    r"(?:(?:get|gets|getting|got|see|sees|saw|seeing|measured?|measures|clock\w*|reach\w*|hit|hits|gave|gives|give|shows?"
    r"|showed|reads?|reports?|ran at|runs at|is at|are at|were at|went to|dropped to|came (?:out )?(?:to|at|as)"
    r"|(?:is|are|was|am) (?:now|at)|at)\b\W*)+"
    r"(?:(?:about|around|roughly|only|now|at|it|a|an?|like|more like)\b\W*)*"
    r"~?(?P<figure>\d+(?:\.\d+)?)"
    r"\W*(?:(?:now|today|here|on average|avg|average|in the log|instead|there)\b\W*)*",
    re.I,
)
"""A line that reports a figure and does not say of what."""
_RESULTS = re.compile(
    r"\W*(?P<figure>\d+\.\d+)\s+(?:on|for|with)\s+#?[1-3](?:\W+(?:and\W+)?\d+\.\d+\s+(?:on|for"
    r"|with)\s+#?[1-3])+\W*",
    re.I,
)
"""The same of several proposals: "2.3 on 1, 2.4 on 2"."""
_RESULT = re.compile(r"\d+\.\d+(?=\s+(?:on|for|with)\b)", re.I)
_ORDER = re.compile(r"\W*(?:show|give)\b", re.I)
"""Asks for something, and reports nothing: "show 2"."""
_NAMES = (
    (re.compile(r"\W*(?:(?:it|that)(?:'s| is| was)|its|thats|i mean|sorry|in|the|of|as|is)\b", re.I), ""),
    (re.compile(r"\W*(?:step|iter\w*)[ _-]?(?:time)?\b(?=\W*$|\s*(?:of|for|with|on)\b)", re.I), " s step "),
    (re.compile(r"\W*mfu\b", re.I), " % mfu "),
)
"""What a figure is of, in place of its unit; and words before either."""


def bare_figure(text: str) -> str | None:
    """The figure of a line that reports one, of which neither the unit nor the kind is said; ``None`` without it."""
    if (several := _RESULTS.fullmatch(text)) is not None:
        return several["figure"]
    found = None if _ORDER.match(text) else _FIGURE.fullmatch(_WHOSE.sub(" ", without_plans(text)))
    return found["figure"] if found else None


def figure_of_what(figure: str) -> str:
    """Asks what a bare figure is."""
    return (
        f'What is {figure}: seconds a step, % MFU, tokens/s, TFLOP/s or GiB? Say its unit, as in "{figure} s" or'
        f' "proposal 1 measured {figure} s". Nothing is recorded yet.'
    )


def with_unit_of_figure(text: str, reported: str | None) -> str:
    """The report of before with the unit that the text begins with: "seconds, with proposal 1"; else the text."""
    if reported is None or (figure := bare_figure(reported)) is None:
        return text
    start, rest = reported.rindex(figure) + len(figure), text
    for pattern, unit in _NAMES:
        while (found := pattern.match(rest)) is not None and found.end():
            rest = f"{unit}{rest[found.end() :]}"
            if unit:
                break
    named = amounts(f"{figure} {rest.strip()}")
    if not named or named[0].unit in {"", "other", "x"} or named[0].start:
        return text
    if _RESULTS.fullmatch(reported):
        return _RESULT.sub(lambda one: f"{one[0]} {rest.strip()}", reported)
    return f"{reported[:start]} {rest.strip()}"
