"""Words at the start of a line that say nothing: "hmm", "ok so", "well"."""

import re

_INTERJECTIONS = re.compile(
    r"^\s*(?:(?:h+m+|u[hm]+|a+h+|oh|er+|well|right|alright|listen|look|fine|nah)\b[\s,.!…-]*"
    r"|(?:hi|hey|hello|yo|morning)\b[\s,.!…-]*(?=(?:quick|does|do|is|are|can|what|how|why|which|will|would|could)\b)"
    r"|quick (?:one|question|q)\b[\s,.:!…-]*"
    r"|ok(?:ay)?(?:,\s*|\s+(?=(?:so|and|but|then)\b)))+(?=\w)",
    re.I,
)


def without_interjections(text: str) -> str:
    """The text from its first word that says something."""
    return _INTERJECTIONS.sub("", text)
