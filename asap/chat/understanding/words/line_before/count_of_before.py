"""A count of the run that was just asked about, without its name: "which sequence do you assume?" · "it's 32k"."""

import re

from asap.chat.understanding.quantities.things import Thing, things_named

_OF_THE_RUN: dict[Thing, str] = {"batch": "batch", "sequence": "sequence length"}
_SAID = re.compile(
    r"^(?P<before>\W*(?:(?:ah|oh|well|so|ok|no|nope|actually)\W+)*)(?:(?:it|that|this|ours)(?: is|'s| was)"
    r"|we (?:use|have|run|train)(?: (?:at|with))?)\s+(?P<count>\d+(?:\.\d+)?\s?k?)(?=\s*(?:[,;!]|\.(?!\d)|\band\b|$))",
    re.I,
)


def count_asked(text: str) -> Thing | None:
    """The batch or the sequence, where a question names one of them alone."""
    named: set[Thing] = {thing for thing in things_named(text) if thing in _OF_THE_RUN}
    return named.pop() if len(named) == 1 else None


def with_count_of_before(text: str, asked: Thing | None) -> str:
    """The text with the name of what was asked about."""
    if asked is None or "?" in text:
        return text
    return _SAID.sub(lambda said: f"{said['before']}our {_OF_THE_RUN[asked]} is {said['count']}", text)
