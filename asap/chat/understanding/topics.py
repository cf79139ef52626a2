"""What a message asks for, by the words that engineers use."""

import re
import tomllib
from enum import StrEnum
from pathlib import Path


class Topic(StrEnum):
    """A kind of question."""

    THANKS = "thanks"
    GREETING = "greeting"
    MAXTEXT = "maxtext"
    CHANGE_OF_MIND = "change of mind"
    CAPTURE = "capture"
    OPINION = "opinion"
    SURE = "sure"
    EVIDENCE = "evidence"
    SOURCES = "sources"
    COMPARE = "compare"
    WHY_NOT = "why not"
    WHAT_IF = "what if"
    EXPLAIN = "explain"
    FIRST = "first"
    BOTTLENECK = "bottleneck"
    PROPOSALS = "proposals"
    RUN = "run"
    PRECEDENT = "precedent"
    PRINCIPLE = "principle"
    HELP = "help"
    UNKNOWN = "unknown"


ADVERBS = r"(?:(?:\w+ly|still|just|do|would|rather|much|more|so|very|far|way|also|even) )*"
_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_PATTERNS = {
    Topic(name): re.compile("|".join(words).replace("{VERY}", ADVERBS), re.IGNORECASE) for name, words in _WORDS.items()
}
_QUESTION = re.compile(
    r"\?\s*$|^\W*(?:(?:and|so|but|ok|then|well) )*(?:did|do|does|is|are|was|were|has|have|will|would|could|should"
    r"|shouldn'?t|can|can'?t|what(?:'?s)?|why|how|which|who|when|where|isn'?t|aren'?t|wasn'?t|won'?t|didn'?t|doesn'?t"
    r"|don'?t you)\b",
    re.I,
)


def topics(text: str) -> set[Topic]:
    """Every topic that the words of a message fit."""
    return {topic for topic, pattern in _PATTERNS.items() if pattern.search(text)}


def is_question(text: str) -> bool:
    """Whether a sentence asks, by how it begins or ends."""
    return _QUESTION.search(text) is not None
