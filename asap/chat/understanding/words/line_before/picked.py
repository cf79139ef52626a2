"""Which of the questions that were offered is meant: "the second", "2", "the latter"."""

import re
from collections.abc import Sequence

_FILLER = r"\W*(?:(?:ok(?:ay)?|yes|yeah|well|i mean|i meant|meant|no|nope|so|the|option|question|number|one)\b\W*)*"
_LAST = r"\W*(?:(?:one|question|please|of (?:them|the two|these|those))\b\W*)*"
_RANKS = (r"(?:first|1st|1|former|a)", r"(?:second|2nd|2|latter|other|b)")
_PICKED = tuple(re.compile(rf"{_FILLER}{rank}{_LAST}", re.I) for rank in _RANKS)


def picked_in(text: str, offered: Sequence[str]) -> str | None:
    """The question that a line picks and says no more; ``None`` if it picks none."""
    pairs = zip(_PICKED, offered, strict=False)
    return next((question for pattern, question in pairs if pattern.fullmatch(text)), None)
