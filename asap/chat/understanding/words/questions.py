"""Whether a sentence asks, by how it begins or ends."""

import re

_QUESTION = re.compile(
    r"\?\s*$|^\W*(?:(?:and|so|but|ok|then|well|now) )*(?:did|do|does|is|are|was|were|has|have|will|would|could|should"
    r"|shouldn'?t|can|can'?t|what(?:'?s)?|why|how|which|who|when|where|isn'?t|aren'?t|wasn'?t|won'?t|didn'?t|doesn'?t"
    r"|don'?t you)\b",
    re.I,
)


def is_question(text: str) -> bool:
    """Whether a sentence asks."""
    return _QUESTION.search(text) is not None
