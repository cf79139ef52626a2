"""Proposals that a sentence names by their number: "proposal 2", "the third one", "compare 1 and 3"."""

import re
from collections.abc import Sequence
from typing import Literal

from asap.chat.understanding.quantities.amounts import Amount
from asap.chat.understanding.quantities.blanked import blanked

Lone = Literal["none", "spoken", "all"]
"""Lone digits that are ranks: none, those where a proposal's name stands, all, as in "compare 1 and 3"."""
_RANKS = {
    "first": 1, "1st": 1, "one": 1, "top pick": 1, "top": 1, "winner": 1, "best": 1, "runner-up": 2, "second": 2,
    "2nd": 2, "two": 2, "second-best": 2, "third": 3, "3rd": 3, "three": 3, "last": 3,
}  # fmt: skip
_NOUN = r"(?:proposals?|options?|plans?|numbers?|candidates?|suggestions?|picks?|no\.?|nr\.?)"
_NUMBERED = re.compile(rf"(?:\b{_NOUN}\s*#?\s*|#)(\d{{1,2}})(?![\d.,]*\d|\w|\s*%)", re.I)
_YOURS = re.compile(
    r"\byours\b|\byour (?:favou?rite|best|recommendation|suggestion|(?:top |first )?(?:pick|choice))\b(?! guess)"
    r"|\bwhat you (?:suggest|propose|recommend)(?:ed)?\b",
    re.I,
)
"""What comes first."""
BEST = re.compile(
    r"\b(?:with|for|under|of|on|in|using|by|do|does|would|take|run|than)\s+(?:the|your)\s+"
    r"(?:best|top|recommended|winning|leading)\s+(?:one|plan|proposal|option|candidate|pick|config\w*|layout|sharding)\b",
    re.I,
)
_TOP = re.compile(r"\b(?:top|first|best) (two|three|2|3)\b", re.I)
_FOLLOWING = re.compile(r"\s*(?:,|,?\s*and|or|vs\.?|versus|&|with|to)\s*#?(\d{1,2})(?![\d.,]*\d|\w|\s*%)", re.I)
_NAMED = re.compile(
    r"\b(?P<rank>first|1st|second-best|second|2nd|third|3rd)(?=\s+(?:one|proposal|option|plan|candidate|suggestion)\b)"
    r"|\bthe\s+(?P<the>first|second|2nd|third|3rd)\b(?!\s+(?:step|slice|time|run|layer))"
    r"|\b(?P<place>runner-up|top pick)\b|\b(?:proposal|option|number|plan)\s+(?P<spelled>one|two|three)\b",
    re.I,
)
_BARE = re.compile(r"(?<![\w=.:,$-])([1-9])(?![.,]?\d|\w|\s*%|-)", re.I)


_SPOKEN = re.compile(
    r"(?:\b(?:in|of|for|under|after|with|does|is|why|than|apply|applying|take|taking|pick|launch|try|prefer|like|compare|explain|verify|put|show)"
    r"|^\W*(?:and|but|so|ok|then)?)\s*\b([1-3])"
    r"(?=\W*$|\s*[?!,;]|['’]s\b|\s+(?:but|without|if|instead|vs|than|worse|better|slower|faster|behind|ahead|is|was|does|did|would|will|be|at|over|first|fits?|ooms?"
    r"|right|now|please|though|too|as|really|still|in|on|(?:to|with|and|against)(?=\s+[a-z]))\b)",
    re.I,
)
"""A lone digit where the name of a proposal stands: "the offload in 2", "why is 3 slower"."""


def ranks(text: str, measured: Sequence[Amount], lone: Lone) -> list[tuple[int, int]]:
    """The numbers in their order, each with its place.

    Args:
        text: one sentence without written plans.
        measured: numbers that are measurements or counts: no ranks.
        lone: which lone digits are ranks.
    """
    text = blanked(text, [(amount.start, amount.end) for amount in measured])
    found: list[tuple[int, int]] = []
    for match in _NUMBERED.finditer(text):
        found.append((match.start(1), int(match[1])))
        position = match.end()
        while following := _FOLLOWING.match(text, position):
            found.append((following.start(1), int(following[1])))
            position = following.end()
    for match in _NAMED.finditer(text):
        word = next(filter(None, match.groups())).lower()
        found.append((match.start(), _RANKS[word]))
    found += [(match.start(), 1) for pattern in (_YOURS, BEST) for match in pattern.finditer(text)]
    for match in _TOP.finditer(text):
        found += [(match.start() + rank, rank + 1) for rank in range(3 if match[1].lower() in {"three", "3"} else 2)]
    if lone != "none":
        pattern = _BARE if lone == "all" else _SPOKEN
        found += [(match.start(1), int(match[1])) for match in pattern.finditer(text)]
    return list(dict(sorted(found)).items())
