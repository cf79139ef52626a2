"""Whether a sentence asks, by how it begins or ends."""

import re

_QUESTION = re.compile(
    r"^\W*(?:the )?(?:cheapest|fastest|best|easiest|smallest|simplest|quickest|safest) (?:way|option|change|setup"
    r"|fix)\b|\?\s*$|\b(?:why|how come|how (?:much|many|long|fast|big)(?: \w+){0,2})\W*$"
    r"|\bany (?:ideas?|clues?|thoughts?|suggestions?|hints?|tips)\b"
    r"|^\W*(?:(?:and|so|but|ok|then|well|now) )*(?:did|do(?! not\b)|does|is|are|was|were|has|have|will|would|could"
    r"|should|shouldn'?t|can(?!'?t\b)|can'?t(?=\s+(?:we|i|it|you|they|this|that|the|one)\b)|what(?:'?s)?|why|how|which|who|when|where|isn'?t|aren'?t|wasn'?t|won'?t|didn'?t|doesn'?t"
    r"|don'?t you)\b"
    r"|^\W*(?:(?:and|so|but|ok|then|well|now) )*(?:with|at|on|for|in|under|by|from|up to|until) (?:what|which|how)\b"
    r"|^\W*(?:(?:and|so|but|ok|then|well|now) )*(?:with|at|on|for|in|under) (?:\S+ ){1,4}?"
    r"(?:what(?:'s| is| are| would| does)|how (?:much|many|long|fast|big))\b",
    re.I,
)
_SIZE_WANTED = re.compile(
    r"^\W*(?:the )?(?:smallest|fewest|least|min(?:imum|imal)?|number of)\s+(?:[\w-]+\s+){0,2}?"
    r"(?:chips?|[gt]pus?|devices?|nodes?|hosts?|machines?|pods?|slices?|clusters?|[vhab]\d{1,3}\w*)\b"
    r"(?!.*\b(?:took|ran|runs|was|were|is|are|gave|gives|got|measured|had)\b)",
    re.I,
)
"""A size that is wanted, without a verb: "smallest cluster that does 1M tok/s"."""

_PLAN = (
    r"(?:plans?|proposals?|options?|configs?|configurations?|layouts?|mesh(?:es)?|setups?|candidates?|alternatives?"
    r"|ways?|ideas?|ones?)"
)
_SOUGHT = re.compile(
    r"\b(?:anything|something|nothing else)\b|\beverything (?:but|except|besides)\b"
    r"|\b(?:is|are|isn't|aren't) there (?:really )?(?:no|any)(?: other)? ways?\b"
    r"|\bno (?:other )?way (?:around|without)\b"
    rf"|\b(?:any|an?|another|other|some|more|which|what|no other)\s+(?:[\w-]+\s+){{0,2}}?{_PLAN}\b"
    rf"|\b(?:best|fastest|cheapest|safest|smallest|next best)\s+(?:{_PLAN}\s+)?"
    r"(?=with|without|under|that|which|below|at|no)\b",
    re.I,
)
"""Looks for plans of some kind: "anything without offload?", "best one with tp>=4"."""
_SOUGHT_FIRST = re.compile(rf"^\W*(?:(?:and|so|but|ok|then|well|now|is there|got)\W+)*(?:{_SOUGHT.pattern})", re.I)

_INDIRECT = re.compile(
    r"\b(?:check\w*|know\w*|tell\w*|see\w*|verif\w+|confirm\w*|determin\w+|find(?:ing)? out|figur\w+ out|sure|matters?"
    r"|ask\w*|wonder\w*|test\w*|depends? on|idea|clue|predict\w*|estimat\w+|validat\w+|prov\w+|say)\s+(?:me |us )?"
    r"(?:whether|if)\b",
    re.I,
)
"""A question inside a sentence: "how do I check whether it fits"."""

_HOW_TO_TELL = re.compile(
    r"\bhow\s+(?:would|could|can|do|does|did|should|might|to)\s+(?:(?:i|we|you|one)\s+)?"
    r"(?:see|tell|know|notice|recogni[sz]e|spot|detect|find out|confirm|check|identify|diagnose|rule out"
    r"|make sure|be sure|verify|validate|test|predict|estimate)\b"
    r"|\bhow\s+(?:would|does|do)\s+[^.?!]*\b(?:show(?: up)?|look|manifest)\b"
    r"|\bwhat\s+(?:would|does|do|should|could|will)\s+(?:[a-z'-]+\s+){1,4}?(?:look\s+(?:like|for|at)|see|show|expect|notice)\b"
    r"|\b(?:signs?|symptoms?|signatures?|indicat\w+|evidence|tell-?tales?|giveaways?)\s+(?:of|for|that)\b"
    r"|\bwhere\s+(?:would|do|can|should|could)\s+(?:i|we|you|one)\s+(?:see|look|notice|find)\b",
    re.I,
)

_AS_IT_IS = re.compile(r"\bas (?:it |this )?is\b", re.I)


_WHY = re.compile(r"\bwhy\b|\bhow come\b|\b(?:not|n't|dont) (?:understand|get|see)\b|\bexplain\b|\breasons?\b", re.I)


def asks_why(text: str) -> bool:
    """Whether it asks for reasons."""
    return _WHY.search(text) is not None


def asks_how_to_tell(text: str) -> bool:
    """Whether it asks by what something is recognised, or how to find it out."""
    return _HOW_TO_TELL.search(text) is not None


def asks_indirectly(text: str) -> bool:
    """Whether its "if" or "whether" begins what is asked, and supposes nothing."""
    return _INDIRECT.search(text) is not None


def seeks_plans(text: str) -> bool:
    """Whether it looks for plans of some kind, with what it says of them: "anything without offload"."""
    return _SOUGHT.search(text) is not None


def is_question(text: str) -> bool:
    """Whether a sentence asks."""
    if _QUESTION.search(text) is not None or _SOUGHT_FIRST.search(text) is not None:
        return True
    return _SIZE_WANTED.search(_AS_IT_IS.sub("", text)) is not None
