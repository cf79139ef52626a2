"""What one message is about: the nearest topic, and where its figures decide, the topic that they are of."""

import re
from collections.abc import Sequence

from asap.chat.understanding.quantities.amounts import Amount
from asap.chat.understanding.scene import Context
from asap.chat.understanding.topics.masks import masked
from asap.chat.understanding.topics.retrieval import PERHAPS, THIN, THRESHOLD, Match, retrieval
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.questions import is_question
from asap.chat.understanding.words.vocabulary.function_words import function_words
from asap.chat.understanding.words.vocabulary.interjections import without_interjections

_HALF = 0.5
_GREETS = re.compile(
    r"\b(?:hi|hello|hey|yo|greetings|morning|evening|afternoon|day|who are you|what are you|bot|there|ready|awake|back"
    r"|begin|again|questions?|one)\b",
    re.I,
)
"""Words of a greeting; a word like another, "both", is none."""
_ADVERBS = re.compile(r"(?<=\w)\s+(?:now|then|still|again|anyway|actually|really)(?=\W*$)|^\W*still\s+(?=\w)", re.I)
"""Words at the ends of a line that say nothing of its topic: "fits now?"."""
_PRICED = {Topic.TEST_COST, Topic.RANK_BY}
_TRAINING = 1e9
"""Tokens from which a number of them is a training run, and no sequence."""
_IT = re.compile(r"\b(?:it|its|that|this)\b", re.I)
_QUOTES = re.compile(
    r"\byou (?:just |once |also |even |have )*(?:said|told (?:me|us)|claim(?:ed)?|wrote|stated|promised)\b", re.I
)
"""Quotes the engine."""
_CONFIRMS = re.compile(r"^(?!.*\bwhat\b).*\b(?:you|u) mean(?:t)?\W*$", re.I)
"""Asks whether that was meant, and for the meaning of no word: "batch too small you mean"."""
_LOOSE = {Topic.MEMORY, Topic.UNKNOWN, Topic.BASIS, Topic.SOURCES, Topic.OPINION}
"""Topics of what a quote is of, and of what is asked about it."""
_NEVER_PERHAPS = {
    Topic.THANKS, Topic.GREETING, Topic.UNKNOWN, Topic.HOSTILE, Topic.OUT_OF_SCOPE, Topic.REPORTED, Topic.RETRACTION,
    Topic.FALSE_CLAIM, Topic.WHAT_IF, Topic.WHY_NOT, Topic.OPINION, Topic.HELP, Topic.SERVING, Topic.LEARNING,
    Topic.TERM, Topic.PRINCIPLE,
}  # fmt: skip
"""Topics whose answer needs more than a guess at the topic."""
_AGAINST_PREDICTION = re.compile(
    r"\b(?:slower|faster|longer|shorter|more|less|higher|lower|worse"
    r"|better)\b[^.?!]{0,30}\bthan (?:what )?(?:you (?:said|predict\w*"
    r"|told|claim\w*|estimat\w+|promis\w+|thought|had)|your (?:\w+ )?(?:number|figure|estimate|prediction"
    r"|forecast|guess|model)"
    r"|predicted|forecast)",
    re.I,
)
"""Sets what was measured beside what the engine had said."""


_BOUND = re.compile(
    r"^\W*(?:(?:why|how|so|but|and|really|is|are|isn't|aren't|the|our)\b\W*)*(?:we|it|this|that|run|job|step)"
    r"(?:'re|'s| is| are| isn't| aren't)?(?: (?:really|actually|not|so|all)){0,2}"
    r" (?:comm\w*|compute|memory|hbm|network|bandwidth|host|io|latency|input)[- ]bound\b",
    re.I,
)
_PARTS = {Topic.COLLECTIVES, Topic.OPERATIONS, Topic.UNKNOWN, Topic.MEMORY, Topic.ROOFLINE, Topic.OPINION}
"""Topics of the parts of a step, where what bounds it is spoken of as a whole."""


def topic_of(
    text: str, found: Sequence[Amount], named: Sequence[str], lone: Sequence[Amount], context: Context
) -> tuple[Topic, Topic | None]:
    """The topic, and the one that it may be where it is not near enough to be its topic.

    Args:
        text: the message; raises PlanError where a plan in it is malformed.
        found: its amounts.
        named: operations that it names.
        lone: amounts that may be ranks.
        context: what was spoken of before.
    """
    said = without_interjections(masked(text, found, named, lone))
    near = _matches(text, said)[0]
    if near.score < THRESHOLD and (bare := _ADVERBS.sub("", said)) != said:
        said, near = bare, max(near, _matches(text, bare)[0], key=lambda one: one.score)
    perhaps = near.topic if near.score >= PERHAPS and near.topic not in _NEVER_PERHAPS else None
    sure = near.score >= THRESHOLD and not _is_thin(near, said)
    return _by_figures(text, found, context, near.topic if sure else Topic.UNKNOWN), perhaps


def _is_thin(near: Match, said: str) -> bool:
    """Whether most of what is said is not in the words of a topic that is hardly near enough: better asked back."""
    weak = near.score < THIN and near.topic not in _NEVER_PERHAPS
    return weak and retrieval().covered(said, near.topic, function_words()["en"]) < _HALF


def _matches(text: str, said: str) -> list[Match]:
    """The nearest topics of what is said; what asks or has a figure says no thanks."""
    near = retrieval().matches(said)
    thanks = not is_question(text) and not re.search(r"\d{2}|\d\.\d", text)
    greets = _GREETS.search(text) is not None
    near = [one for one in near if one.topic is not Topic.GREETING or greets]
    return [one for one in near if one.topic is not Topic.THANKS or thanks]


def _by_figures(text: str, found: Sequence[Amount], context: Context, topic: Topic) -> Topic:
    """What a text is about: throughput where money or a whole training is named, else what the examples say."""
    if _AGAINST_PREDICTION.search(text):
        return Topic.PREDICTION_CHECK
    if topic is Topic.TERM and _CONFIRMS.search(text):
        return Topic.UNKNOWN
    if topic in _LOOSE and _QUOTES.search(text) and any(a.unit for a in found):
        return Topic.FALSE_CLAIM
    if topic in _PARTS and _BOUND.search(text) and is_question(text):
        return Topic.BOTTLENECK
    if any(a.unit == "tokens" and a.value >= _TRAINING for a in found):
        return Topic.THROUGHPUT
    priced = any(a.unit in {"$", "$/node", "chip-hours"} for a in found)
    if priced and context.topic is Topic.TEST_COST and _IT.search(text):
        return Topic.TEST_COST
    return Topic.THROUGHPUT if priced and topic not in _PRICED else topic
