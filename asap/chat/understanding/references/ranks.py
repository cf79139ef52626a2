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
    r"\byours\b(?!\s*(?:is|was|says?|said|at|:|had)?\s*~?\d)"
    r"|\byour (?:favou?rite|best|recommendation|suggestion|(?:top |first )?(?:pick|choice))\b(?! guess)"
    r"|\bwhat you (?:suggest|propose|recommend)(?:ed)?\b",
    re.I,
)
"""What comes first."""
BEST = re.compile(
    r"\b(?:with|for|under|of|on|in|using|by|do|does|would|take|run|than)\s+(?:the|your)\s+"
    r"(?:best|top|recommended|winning|leading)\s+(?:one|plan|proposal|option|candidate|pick|config\w*|layout|sharding)\b",
    re.I,
)
_TOP = re.compile(
    r"\b(?:top|first|best) (two|three|2|3)\b(?! (?:things|changes|ideas|steps|experiments|tests|fixes|knobs|settings))",
    re.I,
)
_FOLLOWING = re.compile(r"\s*(?:,|,?\s*and|or|vs\.?|versus|&|with|to)\s*#?(\d{1,2})(?![\d.,]*\d|\w|\s*%)", re.I)
_NAMED = re.compile(
    r"\b(?P<rank>first|1st|second-best|second|2nd|third|3rd)(?=\s+(?:one|proposal|option|plan|candidate|suggestion)\b)"
    r"|\bthe\s+(?P<the>first|second|2nd|third|3rd)\b"
    r"(?!\s+(?:\d+|few|two|three|(?:[a-z]+\s+)?(?:steps?|slices?|times?|runs?|layers?"
    r"|iterations?|epochs?|batch(?:es)?|nodes?|hosts?)))\b"
    r"|\b(?P<place>runner-up|top pick)\b|\b(?:proposal|option|number|plan)\s+(?P<spelled>one|two|three)\b",
    re.I,
)
_BARE = re.compile(r"(?<![\w=.:,$-])([1-9])(?![.,]?\d|\w|\s*%|-|\s+ways?\b)", re.I)
_COUNTED = re.compile(
    r"(?<!per )(?<!/)\b(?:pipeline|tensor|context|expert|data|fsdp|[dtcep]p|stages?|seq\w*|(?:micro)?batch\w*"
    r"|chips?|[gt]pus?|devices?"
    r"|nodes?|hosts?|slices?|pods?|layers?|repeats?|chunks?) (?:with|on|of|for) $",
    re.I,
)
"""Before a lone digit: it is a number of those, and of no proposal."""
_NUMBERED_THING = re.compile(
    r"\b(?:steps?|iter\w*|epochs?|ranks?|nodes?|hosts?|[gt]pus?|chips?|devices?|layers?|stages?|attempts?|trials?|phases?"
    r"|days?|weeks?|versions?|seeds?|codes?|errors?|slots?|racks?|slices?|pods?|zero) #?$",
    re.I,
)
"""Before a lone digit: it is the number of such a thing, as in "OOM at step 3"."""
_COUNTABLE = (
    r"(?:nodes?|hosts?|servers?|machines?|[gt]pus?|chips?|devices?|cores?|slices?|pods?|racks?|stages?|layers?|experts?"
    r"|micro-?batch\w*|batch\w*|seq\w*|samples?|tokens?|steps?|iter\w*|runs|jobs|times|repeats?|chunks?|parts?|ways?"
    r"|k|m|b|s|ms|secs?|seconds?|min\w*|hours?|days?|weeks?|gi?b|links?|nics?|ports?|proposals?|plans?|options?)"
)
"""What a lone digit may be a number of."""
_CHOSEN = (
    re.compile(r"\b(?P<chosen>[1-3])\s+or\s+(?:just |rather |better )?(?:keep|stay|stick|leave|nothing|not)\b", re.I),
    re.compile(
        r"\b(?P<chosen>[1-3])\s+(?:instead of|rather than|over|vs\.?|versus|or)\s+#?(?P<other>[1-3])"
        r"(?=\W*$|\s*[,.;?!](?!\d)|\s+(?:then|please|and|but|now|if|given|when|on)\b)",
        re.I,
    ),
    re.compile(
        r"\b(?:go|going|went|stick|sticking|start|run|stay|compare\w*|(?:now|what runs) (?:vs\.?|versus|and))"
        r" (?:with |for )?(?P<chosen>[1-3])(?=\W*$|\s*[,.;?!](?!\d)|\s+(?:then|instead|please|first|now|and|but)\b)",
        re.I,
    ),
    re.compile(
        r"^\W*(?:(?:ok(?:ay)?|so|and|but|fine|well|hm+|then|is|does|isn't|doesn't)\W+)*(?P<chosen>[1-3])\s+"
        r"(?:(?:also|still|only|just)\s+)?(?:look|seem|sound|feel|leave|say|claim|promise|give|fit|oom|win|beat|need|use"
        r"|take|get|keep|cost|show|save)s?\b"
        r"|^\W*(?:(?:so|and|but|why)\W+)*(?P<other>[1-3])\s+ha(?:s|ve)\b(?! to\b)",
        re.I,
    ),
    re.compile(
        r"\b(?:can|could|will|would|do|does|did|has|must|should|may|doesn't|don't|didn't|won't|can't)\s+(?P<chosen>[1-3])\s+(?:(?:also|still|even|really)\s+)?"
        rf"(?!{_COUNTABLE}\b|(?:of|x|or|and|more|less|fewer|extra|additional|[a-z]+[ -]{_COUNTABLE})\b)[a-z]{{2,}}\b",
        re.I,
    ),
    re.compile(
        r"\bwhy (?:is|was|isn't|does|did|doesn't|would|has)\s+(?P<chosen>[1-3])\s+"
        rf"(?!{_COUNTABLE}\b|(?:of|x|or|and|more|less|fewer)\b)[a-z]{{2,}}\b",
        re.I,
    ),
    re.compile(r"\b(?:is|was|isn't|wasn't)\s+(?:it\s+)?(?P<chosen>[1-3])\s+(?:not\s+)?the\s+(?:one|plan)\b", re.I),
    re.compile(r"^\W*(?:ok(?:ay)?|fine|so|right|alright|well)\W+(?P<chosen>[1-3])\s*[,.;:-]\s+(?=[a-z])", re.I),
    re.compile(
        r"\b(?:risks?|downsides?|drawbacks?|catch|trade-?offs?|cons|command|line|flags|interval)"
        r" (?:to|with|for|of|in|on) (?P<chosen>[1-3])(?=\W*$|\s*[,.;?!](?!\d))",
        re.I,
    ),
    re.compile(
        r"\b(?:beats?|beaten by|outperforms?|outruns?|vs\.?|versus|against|compared (?:to|with)"
        r"|(?:better|worse|faster|slower|cheaper|safer|tighter) than)\s+#?(?P<chosen>[1-3])(?=\W*$|\s*[,.;?!](?!\d))",
        re.I,
    ),
    re.compile(
        r"^\W*(?:(?:ok(?:ay)?|so|and|but|then|what about)\W+)*(?P<chosen>[1-3])\s+(?:without|with no|but no"
        r"|minus)\s+[a-z]",
        re.I,
    ),
    re.compile(r"\b(?:do|run|take|use|try|launch)\s+(?P<chosen>[1-3])\s+(?:with|without|but|at)\s+[a-z]", re.I),
    re.compile(
        r"\b(?:how (?:many|much|large|big|long)|what(?:'s| is| are)|which)\b(?!\s+if\b)"
        r"[^?]*\s(?:in|of|for|under)\s+(?P<chosen>[1-3])(?=\W*$)"
        r"|^\W*(?:(?:and|the|so)\W+)*[\w-]+(?: (?:batch|size))* (?:in|of|for|with) (?P<other>[1-3])\W*\?",
        re.I,
    ),
    re.compile(
        r"(?:\S+\s+){4}(?:with|on|for) (?P<chosen>[1-3])"
        r"(?=\W*$|\s*,\s+[a-z])",
        re.I,
    ),
)
"""A lone digit that is chosen as no count can be: "go with 3", "3 instead of 1", "3 looks safer", "now vs 1"."""


_SPOKEN = re.compile(
    r"(?:\b(?:(?:what|how|tell (?:me|us)|more) about"
    r"|in|of|for|under|after|with|does(?:n't)?|is(?:n't)?|why|than|apply|applying|take|taking|pick|launch|try|prefer|like|compare|explain|verify|put|show|help|helps"
    r"|(?:rul(?:e|es|ed)|knock\w*|tak\w+) out|kill(?:s|ed)?|eliminat\w+|exclud\w+)"
    r"|^\W*(?:and|but|so|ok|then)?)\s*\b([1-3])"
    r"(?=\W*$|\s*[?!,;]|['’]s\b|\s+(?:but|without|if|instead|vs|than|worth|good|ok|worse|better|slower|faster|behind|ahead|is|was|does|did|would|will|be|at|over|first|fits?|ooms?"
    r"|less|more|any|much|safer|cheaper|right|out|gone|dead|now|please|though|too|as|really|still|in|on|then|again|alone"
    r"|(?:to|with|and|against)(?=\s+[a-z]))\b)",
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
    chosen = [place for pattern in _CHOSEN for match in pattern.finditer(text) for place in _chosen(match)]
    found = [
        (at, rank) for at, rank in chosen if not any(a.start <= at < a.end and a.unit != "other" for a in measured)
    ]
    text = blanked(text, [(amount.start, amount.end) for amount in measured])
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
    named = (each for each in found if not _is_of_a_thing(text[: each[0]]))
    return list(dict(sorted(named)).items())


def _is_of_a_thing(before: str) -> bool:
    """Whether what stands before a lone digit makes it the number of something else, or a number of them."""
    return _COUNTED.search(before) is not None or _NUMBERED_THING.search(before) is not None


def _chosen(match: re.Match[str]) -> list[tuple[int, int]]:
    return [(match.start(name), int(digit)) for name, digit in match.groupdict().items() if digit]
