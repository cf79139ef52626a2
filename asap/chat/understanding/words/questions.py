"""Whether a sentence asks, by how it begins or ends."""

import re

_QUESTION = re.compile(
    r"\?\s*$|^\W*(?:(?:and|so|but|ok|then|well|now) )*(?:did|do|does|is|are|was|were|has|have|will|would|could|should"
    r"|shouldn'?t|can|can'?t|what(?:'?s)?|why|how|which|who|when|where|isn'?t|aren'?t|wasn'?t|won'?t|didn'?t|doesn'?t"
    r"|don'?t you)\b",
    re.I,
)
_SIZE_WANTED = re.compile(
    r"^\W*(?:the )?(?:smallest|fewest|least|min(?:imum|imal)?|number of)\s+(?:[\w-]+\s+){0,2}?"
    r"(?:chips?|[gt]pus?|devices?|nodes?|hosts?|machines?|pods?|slices?|clusters?|[vhab]\d{1,3}\w*)\b"
    r"(?!.*\b(?:took|ran|runs|was|were|is|are|gave|gives|got|measured|had)\b)",
    re.I,
)
"""A size that is wanted, without a verb: "smallest cluster that does 1M tok/s"."""


def is_question(text: str) -> bool:
    """Whether a sentence asks."""
    return any(pattern.search(text) for pattern in (_QUESTION, _SIZE_WANTED))
