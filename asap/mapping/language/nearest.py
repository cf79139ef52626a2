"""The known name that a mistyped one was most likely meant to be."""

import difflib
from collections.abc import Iterable

LONGEST = 60
"""Characters of a name that are compared; a longer one is no slip of the keyboard."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The closest of some names, or ``None`` if none is close."""
    if len(name) > LONGEST:
        return None
    lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return lower[found[0]] if found else None
