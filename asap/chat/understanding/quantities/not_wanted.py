"""What is named because it is not wanted: "no fp8 then"."""

import re

_DROPPED = re.compile(
    r"\b(?:no|without|not|drop(?:ping)?|skip(?:ping)?|forget|minus|never ?mind|leave|undo)"
    r"\s+(?:(?:the|any|about)\s+)*$",
    re.I,
)


def is_dropped(before: str) -> bool:
    """Whether what follows a text is not wanted."""
    return _DROPPED.search(before) is not None
