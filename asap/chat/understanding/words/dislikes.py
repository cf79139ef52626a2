"""An axis or a technique that somebody does not like: no limit, but nothing to be proposed either."""

import re

NAMED = (
    r"(?:(?:[tpec]p|fsdp|hsdp|d?dp|vpp)\d*\b|\w+[- ]parallel\w*|pipelin\w*|offload\w*|remat\w*|recomput\w*"
    r"|(?:gradient )?accumulat\w+|interleav\w*|host mem\w*)"
    r"(?!\s+(?:numbers?|figures?|predict\w*|estimat\w*|claims?|gains?|math|costs?|memory|time|model)\b)"
)
"""An axis or a technique by the names that are of nothing else, and no figure of it."""
_DISLIKES = re.compile(
    r"\b(?:(?:do not|don't|never|didn't) (?:really |quite |fully |much )?(?:like|trust|fancy)|hate|wary of"
    r"|(?:no|not a)(?: big| huge)? fan of|(?:rather )?stay(?:ing)? away from|steer(?:ing)? clear of)\s+"
    rf"(?:(?!your|how|that|what|why|when)[\w-]+ ){{0,2}}?{NAMED}",
    re.I,
)
_SCORNED = re.compile(
    rf"\b(?P<name>{NAMED})\s+(?:(?:really|totally|just|always)\s+)*"
    r"(?:sucks?|stinks?|blows|(?:kill|burn|bit|hurt|wreck|ruin|tank)(?:s|ed)? (?:us|me|it|things|perf\w*|throughput)"
    r"|is (?:\w+ )?(?:crap|shit|evil|garbage|awful|terrible|horrible|a pain|a mess|no good))(?![\w-])",
    re.I,
)


def with_dislike_named(text: str) -> str:
    """The text with what is scorned as what is not liked: "offloading sucks"."""
    return _SCORNED.sub(r"not a fan of \g<name>", text)


def dislikes(text: str) -> bool:
    """Whether something is not liked: "not a fan of host offload"."""
    return _DISLIKES.search(text) is not None
