"""Elements of arrays: ``MODELS=(a b)`` and ``${MODELS[1]}``, ``declare -A TP=([8b]=2)`` and ``${TP[$SIZE]}``."""

import re

from asap.experiments.shell.words import unquoted, written_words

_KEYED = re.compile(r"\[([^\]]*)\]=(.*)", re.DOTALL)
_PLACE = re.compile(r"-?\d{1,6}", re.ASCII)
_ARRAY = " "
"""What the text of an array begins with."""


def subscript(rest: str) -> str | None:
    """What stands in the brackets that follow a name, ``[$PLACE]``; ``None`` where more than that follows it."""
    inner = rest[1:-1]
    depth = 0
    for char in inner:
        depth += (char == "[") - (char == "]")
        if depth < 0:
            return None
    return inner if rest.startswith("[") and rest.endswith("]") and inner and inner not in "@*" else None


def element(value: str, place: str) -> str | None:
    """The element at a place, or under a key, of the text of an array; ``None`` where it has none."""
    key = unquoted(place.strip())
    if not value.startswith(_ARRAY):
        return value if key == "0" else None
    elements = written_words(value)
    keyed = {unquoted(found[1]): found[2] for word in elements if (found := _KEYED.fullmatch(word))}
    if keyed:
        return unquoted(keyed[key]) if key in keyed else None
    if not _PLACE.fullmatch(key) or not -len(elements) <= int(key) < len(elements):
        return None
    return unquoted(elements[int(key)])
