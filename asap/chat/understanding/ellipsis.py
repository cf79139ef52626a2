"""What a question leaves out: "and for proposal 3?", "per chip?", "same with 32 chips"."""

import re
from collections.abc import Sequence

from asap.chat.understanding.quantities.amounts import Amount
from asap.chat.understanding.quantities.blanked import blanked
from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.references.references import References
from asap.chat.understanding.scene import Context
from asap.chat.understanding.topics.topics import Topic
from asap.plans.prose import plan_spans

INHERITED = {
    Topic.MEMORY, Topic.THROUGHPUT, Topic.MAXTEXT, Topic.SURE, Topic.EXPLAIN, Topic.WHAT_IF, Topic.WHY_NOT,
    Topic.OPERATIONS, Topic.ROOFLINE, Topic.COLLECTIVES, Topic.COMPARE,
}  # fmt: skip
_FILLER = re.compile(
    r"a|about|again|also|an|and|as|at|breakdown|but|by|do|first|for|how|i|if|in|instead|is|it|just|now|number|of|ok"
    r"|okay|on|one|only|option|or|plan|please|plus|proposals?|runner|same|second|so|take|that|the|then|third|to|too|up"
    r"|use|versus|was|we|well|were|what|with"
)
"""Words of a question that say nothing of its topic."""
_SETTING = re.compile(
    r"\b(?:(?:no|any|without|full|minimal|selective|activation)\s+)*(?:remat\w*|recomput\w*|checkpointing)\b"
    r"|\b(?:chips?|slices?|sequences?|layers|experts|batch|context|fp8|int8|bf16|offload|full|minimal)\b",
    re.I,
)
"""What a change is of, where one was spoken of before."""
_MORE = re.compile(r"\s*(?:and|also|plus|then|with|without)\b", re.I)
_PER_CHIP = re.compile(r"\bper (?:chip|device|core|gpu|tpu)\b|/\s?(?:chip|device|core)\b", re.I)


def says_nothing(text: str, found: Sequence[Amount], refs: References, change: Change) -> bool:
    """Whether a message is a lone number or a filler word."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    short = len(words) <= 1 and all(_FILLER.fullmatch(word) for word in words)
    return short and not refs.mentions and refs.wish is None and change.empty and all(not a.unit for a in found)


def is_ellipsis(text: str, refs: References, found: Sequence[Amount], context: Context) -> bool:
    """Whether all that is said beside plans and numbers is filler, so that the topic is the one before."""
    if context.topic not in INHERITED:
        return False
    rest = blanked(text, [(s, e) for s, e, _ in plan_spans(text)])
    rest = _PER_CHIP.sub(" ", rest) if context.topic is Topic.THROUGHPUT else rest
    rest = blanked(rest, [(a.start, a.end) for a in found])
    if context.topic is Topic.WHAT_IF or _MORE.match(text):
        rest = _SETTING.sub(" ", rest)
    words = re.findall(r"[a-z]+", rest.lower())
    return len(words) <= 10 and all(_FILLER.fullmatch(word) for word in words)
