"""In which units figures are given, and of what: "GiB or GB?", "is that per chip or total?"."""

import re

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.vocabulary.function_words import function_words

_WHOLE = (
    r"(?:total|overall|all (?:of them|chips|gpus|devices|tpus)|globally?|together|combined"
    r"|the (?:whole )?(?:cluster|slice|pod|run|job))"
)
_UNIT = re.compile(
    r"\b(?:[kmgt]i?b|(?:gibi|giga|mebi|mega)?bytes?|bits?|ms|s|secs?|(?:milli)?seconds?|minutes?|hours?|tokens?|sequences?"
    rf"|percent|{_WHOLE}"
    r"|(?:per|a|each|one|for (?:one|each)) (?:chip|device|gpu|tpu|core|node|host|slice|step|second|token|sequence))\b"
    rf"|/\s?(?:chip|device|gpu|tpu|core|s|step)\b",
    re.I,
)
_EITHER = re.compile(r"\bor\b|\bvs\.?(?!\w)|\s/\s|\b[gm]i?b/[gm]i?b\b", re.I)
_ASKS = re.compile(r"\b(?:what|which|in what) units?\b|\bunits?\s*\?", re.I)
_OF_A_PART = re.compile(
    rf"^\W*(?:(?:and|so|but)\W+)*(?:(?:is|are) (?:that|it|this|those)|that(?: is|'s))\s+(?:{_UNIT.pattern})\W*$", re.I
)
_OF_WHAT = re.compile(r"(?:%|\bpercent|\bpct|\bshare|\bfraction)\s+of what\b\W*$", re.I)
_SHARES = (
    "A share of the roofline, or of the peak, is of the highest rate that the chip allows an operation: its HBM"
    " bandwidth where it is bound by HBM, its FLOP/s where it is bound by compute. A share beside an operation or a"
    " category is of the time of the step, unless it says of the listed time."
)
_SMALL = {"these", "those", "numbers", "number", "figures", "figure", "actual", "real"}
_MEMORY = "HBM figures are GiB (2^30 bytes, 1.074 GB) on one chip: the fullest one, at its peak."
_SPEED = (
    "A step time is seconds for one step of the whole run; tokens/s are of all chips together, tokens/s/chip of one;"
    " MFU is over all chips."
)
_CHANGE = "A change in % is of the step time against what runs now: -50 % takes half as long."


def asks_unit(question: Question) -> bool:
    """Whether it asks of nothing but units: two of them to choose from, or which they are."""
    text = question.text
    if _OF_WHAT.search(text):
        return True
    if _ASKS.search(text) or _OF_A_PART.match(text):
        return not question.amounts
    rest = re.findall(r"[a-z]+", _UNIT.sub(" ", text).lower())
    small = function_words()["en"] | _SMALL
    named = len(_UNIT.findall(text))
    return (
        named > 1 and _EITHER.search(text) is not None and not question.amounts and all(word in small for word in rest)
    )


def units(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The units of the figures, those that were given last first."""
    answer.complete = True
    if _OF_WHAT.search(question.text):
        answer.add(_SHARES, *([_CHANGE] if conversation.proposals else []))
        return
    given = [_MEMORY, _SPEED, _CHANGE]
    first = {Topic.MEMORY: _MEMORY, Topic.THROUGHPUT: _SPEED}.get(question.context.topic or Topic.UNKNOWN)
    answer.add(*([first] if first else given))
