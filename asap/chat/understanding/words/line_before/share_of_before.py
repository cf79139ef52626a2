"""A bare share after an answer on MFU: "why is the MFU low" · "how far from 45"."""

import re

from asap.chat.understanding.topics.topics import Topic

_BARE = re.compile(
    r"\b(?:(?:how (?:far|close|much)|what)\b[^?\d]*\b(?:from|to|off|for|away from|at)"
    r"|(?:get|reach|hit|need|want|target|goal|go)(?:s|ing)?(?: (?:it|us|me))?(?: (?:to|at|above|over|of|is))?)\s+"
    r"(?P<share>[1-9]\d(?:\.\d+)?)(?=\W*$)(?!\s*%)",
    re.I,
)


def with_share_of_before(text: str, topic: Topic | None) -> str:
    """The text with "% mfu" behind a bare number, where MFU was spoken of last."""
    if topic is not Topic.EFFICIENCY or len(text.split()) > 7:
        return text
    return _BARE.sub(lambda found: f"{found.group()} % mfu", text)
