"""What a question leaves out: "and for proposal 3?", "per chip?", "same with 32 chips"."""

import re
from collections.abc import Sequence

from asap.chat.understanding.quantities.amounts import Amount
from asap.chat.understanding.quantities.blanked import blanked
from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.quantities.things import things_kept
from asap.chat.understanding.references.ranks import BEST
from asap.chat.understanding.references.references import References
from asap.chat.understanding.scene import Context
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.durations import PERIODS_WANTED
from asap.chat.understanding.words.vocabulary.interjections import without_interjections
from asap.plans.axes import Axis
from asap.plans.prose import plan_spans

INHERITED = {
    Topic.MEMORY, Topic.THROUGHPUT, Topic.MAXTEXT, Topic.SURE, Topic.EXPLAIN, Topic.WHAT_IF, Topic.WHY_NOT,
    Topic.OPERATIONS, Topic.ROOFLINE, Topic.COLLECTIVES, Topic.COMPARE, Topic.NUMERICS, Topic.RANK_BY,
}  # fmt: skip
_FILLER = re.compile(
    r"a|about|again|also|an|and|as|at|breakdown|but|by|do|first|for|how|i|if|in|instead|is|it|just|mean|meant|much|now|number|of|ok"
    r"|okay|on|one|only|option|or|plan|please|plus|proposals?|runner|same|second|so|take|that|the|then|there|third|to|too|up"
    r"|use|versus|was|we|well|were|what|which|with"
)
"""Words of a question that say nothing of its topic."""
_SETTING = re.compile(
    r"\b(?:(?:no|any|without|full|minimal|selective|activation)\s+)*(?:remat\w*|recomput\w*|checkpointing)\b"
    r"|\b(?:chips?|slices?|sequences?|layers|experts|batch|context|fp8|int8|bf16|offload|full|minimal)\b",
    re.I,
)
"""What a change is of, where one was spoken of before."""
_AUXILIARY = re.compile(
    r"do|does|did|would|will|can|could|still|needs?|uses?|takes?|even|really|my|our|any|per|gpus?|tpus?|chips?|devices?"
    r"|drops?|goes|down|falls?|rises?|changes?|worse|better|higher|lower|looks?|left|free|each|total|what|jumps?|increases?|growth|grows?|delta|diff\w*"
)
LARGEST_PART = re.compile(
    r"\b(?:dominat\w+|(?:takes?|uses?|needs?|eats?|makes? up|accounts? for)?\s*(?:the )?(?:most|biggest|largest"
    r"|main|worst)\b"
    r"(?: of (?:it|that|them))?(?: (?:part|share|chunk|item|offender|contributor|one)s?\b)?)",
    re.I,
)
"""Asks for the largest part of what is spoken of."""
_STAYS = re.compile(
    r"\b(?:tho|though|obviously|of course|please|pls|keep\w*|hold\w*|same|fixed|constant|unchanged|untouched|stays?"
    r"|staying|must|should|has|have|be|still|global|local|batch(?:es)?|[gml]bs|bs|sizes?|seqs?|sequences?|lengths?|context|chips?|devices?"
    r"|gpus?|tpus?|layers?|microbatch\w*|without|not|never|chang\w+|touch\w+|them)\b",
    re.I,
)
"""What is said of things that stay."""
_PART = re.compile(r"\b(?:part|share|chunk|item|piece|component|bit)s?\b", re.I)
_IN_PARTS = {Topic.MEMORY, Topic.COLLECTIVES, Topic.OPERATIONS}
_OF_THE_STEP = {Topic.COLLECTIVES, Topic.OPERATIONS, Topic.ROOFLINE}
_WHAT_IF = re.compile(r"\bwhat if\b|\bwhy not\b", re.I)
"""Asks for a plan as a whole, whatever was asked before."""
_CHIPS = re.compile(r"\b(?:v\d[a-z]{0,2}|[abh]\d{2,3}|gb200)s?(?:-\d+)?\b", re.I)
_MORE = re.compile(r"\s*(?:and|also|plus|then|with|without)\b", re.I)
_LONE = re.compile(r"(?<![\w#=.,$-])(?P<degree>\d{1,5})(?:[- ]way)?(?![\w.,=%]*\w|\s*%)", re.I)
_COUNT = re.compile(
    r"(?<![\w#=.,$-])(?:\d{2,}(?:[.,]\d+)*|\d(?:\.\d+)?(?=\s?[kmbt]))\s?(?:[kmbt]n?)?(?![\w.,%=]*\w|\s*%)", re.I
)
_NAMES = {"stage": "pp", "seq": "cp"}
_RATE = re.compile(r"\s*(?:/|\bper\b|\ba\b)\s*(?:s|secs?|seconds?|steps?|chip|device|gpu|tpu)\b", re.I)
"""What a figure is a rate of: "tokens/s"."""
_STEP_TIME = re.compile(r"\bstep[- ]?times?\b", re.I)
_PER_CHIP = re.compile(r"\bper (?:chip|device|core|gpu|tpu)\b|/\s?(?:chip|device|core)\b", re.I)


def says_nothing(text: str, found: Sequence[Amount], refs: References, change: Change) -> bool:
    """Whether a message is a lone number or a filler word."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    short = len(words) <= 1 and all(_FILLER.fullmatch(word) for word in words)
    return short and not refs.mentions and refs.wish is None and change.empty and all(not a.unit for a in found)


def is_ellipsis(text: str, refs: References, found: Sequence[Amount], context: Context) -> bool:
    """Whether all that is said beside plans and numbers is filler, so that the topic is the one before."""
    if context.topic not in INHERITED or (context.topic in _OF_THE_STEP and _WHAT_IF.search(text)):
        return False
    if refs.wish is not None and not refs.mentions:
        return False
    text = _CHIPS.sub(lambda name: " " * len(name.group()), text)
    rest = blanked(text, [(s, e) for s, e, _ in plan_spans(text)])
    rest = BEST.sub(" ", rest)
    rest = PERIODS_WANTED.sub(" ", _PER_CHIP.sub(" ", rest)) if context.topic is Topic.THROUGHPUT else rest
    rest = blanked(rest, [(a.start, a.end) for a in found])
    rest = _PART.sub(" ", LARGEST_PART.sub(" ", rest)) if context.topic in _IN_PARTS else rest
    if context.topic is Topic.WHAT_IF or _MORE.match(without_interjections(text)):
        rest = _SETTING.sub(" ", rest)
    words = re.findall(r"[a-z]+", without_interjections(rest).lower())
    return len(words) <= 10 and all(_FILLER.fullmatch(word) for word in words)


def with_axis_of_before(text: str, axis: Axis | None) -> str:
    """The text with a lone number as the degree of the axis of before: "and with 8?" after "what about tp=4?"."""
    found = list(_LONE.finditer(text))
    words = re.findall(r"[a-z]+", _LONE.sub(" ", text).lower())
    named = re.search(r"\b(?:proposal|option|plan|number)s?\b", text, re.I)
    if axis is None or len(found) != 1 or named or not all(_FILLER.fullmatch(word) for word in words):
        return text
    name = _NAMES.get(axis, axis)
    return f"{text[: found[0].start()]}{name}={found[0]['degree']}{text[found[0].end() :]}"


def with_unit_of_before(text: str, unit: str | None) -> str:
    """The text with the unit of before behind a lone number: "and 20k?" after "how long do 10k steps take?"."""
    found = list(_COUNT.finditer(text))
    words = re.findall(r"[a-z]+", _COUNT.sub(" ", text).lower())
    if unit is None or len(found) != 1 or not all(_FILLER.fullmatch(word) for word in words):
        return text
    return f"{text[: found[0].end()]} {unit}{text[found[0].end() :]}"


def is_of_what_stays(text: str) -> bool:
    """Whether it says no more than that something stays as it is: "same global batch tho"."""
    rest = _STAYS.sub(" ", text)
    words = re.findall(r"[a-z]+", without_interjections(rest).lower())
    return bool(things_kept(text)) and not re.search(r"\d", text) and all(_FILLER.fullmatch(word) for word in words)


def is_short(text: str) -> bool:
    """Whether a question has one word beside filler, so that it leaves out of what: "mem?", "does it fit?"."""
    rest = _STEP_TIME.sub("step", _RATE.sub("", without_interjections(text)))
    words = re.findall(r"[a-z]+", rest.lower())
    return sum(not (_FILLER.fullmatch(word) or _AUXILIARY.fullmatch(word)) for word in words) <= 1
