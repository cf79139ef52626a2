"""Two figures in one breath, what runs and a proposal: "step 7.5s now, 6.1 with 1": each by itself, with its unit."""

import re

_PAIR = re.compile(
    r"(?P<now>[^?]*?\d[\d.]*\s?(?P<unit>ms|s|secs?|seconds?)(?:/\w+)?\s*(?:now|before|today|currently|as (?:it )?is"
    r"|(?:on|with|for) (?:the )?(?:baseline|old one|current one)))\s*(?:[,;]|->|→|\b(?:and|but|vs\.?|to)\b)+\s*"
    r"(?P<then>\d+(?:\.\d+)?)\s?(?P<own>ms|s|secs?|seconds?)?\s+(?:w|with|on|for|under|in)\s+"
    r"(?:#|proposal )?(?P<rank>[1-3])(?![\d.,]*\d|\w)(?P<rest>.*)",
    re.I,
)
_ARROW = re.compile(
    r"(?P<lead>[^?\d]*?\b(?:step\w*(?: time)?|it|we|went|dropped|fell|down|from|time)\b[^?\d]*)"
    r"(?P<now>\d+(?:\.\d+)?)\s?"
    r"(?P<unit>ms|s|secs?|seconds?)?\s*(?:-+>|=>|→|to|down to)\s*"
    r"(?P<then>\d+(?:\.\d+)?)\s?(?P<own>ms|s|secs?|seconds?)?"
    r"(?:/step)?\s+(?:w|with|on|for|under|in|using|after)\s+"
    r"(?:#|proposal )?(?P<rank>[1-3])(?![\d.,]*\d|\w)(?P<rest>.*)",
    re.I,
)
"""A step that became another one under a proposal: "step went 12.1 -> 9.8 with 1"."""


def now_and_then(part: str) -> tuple[str, ...]:
    """The report of what runs and that of the proposal; the part alone where it is not both."""
    found = _PAIR.fullmatch(part)
    if found is None and (went := _ARROW.fullmatch(part)) is not None:
        unit = went["own"] or went["unit"] or "s"
        before = f"the baseline took {went['now']} {went['unit'] or unit}"
        return before, f"proposal {went['rank']} took {went['then']} {unit}{went['rest']}"
    if found is None:
        return (part,)
    return found["now"], f"proposal {found['rank']} took {found['then']} {found['own'] or found['unit']}{found['rest']}"
