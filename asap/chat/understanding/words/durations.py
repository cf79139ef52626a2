"""Words that ask how long something takes, and in which unit of time."""

import re

PERIODS_WANTED = re.compile(
    r"\bin\s+(?P<in>second|minute|hour|day|week|month)s\b"
    r"|\bhow many\s+(?P<many>second|minute|hour|day|week|month)s\b",
    re.I,
)
_HOW_LONG = re.compile(
    rf"\bhow long\b(?!.*\b(?:until|before|till)\b)|{PERIODS_WANTED.pattern}|\b(?:duration|time) (?:of|for)\b", re.I
)


def asks_how_long(text: str) -> bool:
    """Whether it asks for the time that something takes, and not for the time until something is known."""
    return _HOW_LONG.search(text) is not None


def period_wanted(text: str) -> str | None:
    """The unit of time that an answer is wanted in: "in minutes"."""
    found = PERIODS_WANTED.search(text)
    return (found["in"] or found["many"]).lower() if found else None
