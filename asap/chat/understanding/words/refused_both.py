"""Techniques that one word refuses together: "1 accumulates, 2 offloads, i want neither"."""

import re

from asap.chat.understanding.words.dislikes import NAMED

_REFUSED = re.compile(
    r"\b(?:neither|none of (?:it|that|this|those|these|them|the above|the (?:two|three))"
    r"|(?:no|nope|nah) (?:to|on|for) (?:both|all|either)"
    r"|both (?:are |is )?(?:out|a? ?no(?:pe|[- ]?go)?|banned|forbidden|impossible|off the table|not an option)"
    r"|(?:not|without|n't (?:\w+ ){1,2}?|no)\s?(?:either|both|any of (?:it|that|those|these|them)))\b"
    r"(?! (?:as|because)\b)",
    re.I,
)
_NAME = re.compile(rf"\b{NAMED}", re.I)
_FIGURE = re.compile(r"\d\s?(?:m?s|%|gi?b|x|tps)\b", re.I)
_LIMITS = re.compile(r"\b(?:must|never|stay\w*|inside|within|keep\w*|leav\w+|only|same)\b", re.I)
"""Words of a limit of its own, which "neither" goes on with."""
_ASKS = re.compile(r"\?|^\W*(?:(?:and|so|but|ok)\W+)*(?:what|which|why|how|is|are|do|does|can|could|would|if)\b", re.I)


def with_both_refused(text: str) -> str:
    """The text as "no … for us" of each technique that stands before "neither"; one that asks or measures stays."""
    refused = _REFUSED.search(text)
    if refused is None or _ASKS.search(text) or _FIGURE.search(text) or _LIMITS.search(text):
        return text
    named = list(dict.fromkeys(found.group().lower() for found in _NAME.finditer(text[: refused.start()])))
    return " and ".join(f"no {name} for us" for name in named) if len(named) > 1 else text
