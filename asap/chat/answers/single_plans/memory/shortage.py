"""By how much a plan misses the HBM that there is: "by how much does it miss", "how far off are we"."""

import re

from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.memory.memory import memory
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.units import format_bytes
from asap.plans import Plan

_BY_HOW_MUCH = re.compile(
    r"\bby how (?:much|many|far)\b|\bhow (?:far|close|much|bad(?:ly)?|many gi?b)\b[^?]*\b(?:off|over|short|miss\w*"
    r"|exceed\w*|above|beyond|away|close|too (?:much|big|large)|lack\w*|overshoot\w*|spill\w*)\b"
    r"|\bhow (?:close|bad) (?:is|are|was) (?:it|we|that|this)\b",
    re.I,
)
_OF_OTHERS = re.compile(
    r"\b(?:your (?:model|number|figure|guess)\w*|faster|slower|quicker|better|worse|cheaper|predict\w*"
    r"|estimate\w*|target|goal|peak|roofline|mfu|baseline|behind"
    r"|proposals? [1-3] and|steps?|seconds?|throughput|tokens?)\b",
    re.I,
)
"""Words of a question that is of another distance than that to the HBM."""


def asks_shortage(conversation: Conversation, question: Question) -> bool:
    """Whether it asks by how much a plan is too large that does not fit, or may not."""
    text = question.text
    asked = _BY_HOW_MUCH.search(text) is not None and not _OF_OTHERS.search(text) and question.change.empty
    return asked and len(question.plans) < 2 and _too_large(conversation, question) is not None


def shortage(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What is missing, and what fills the HBM."""
    plan = _too_large(conversation, question)
    held = prediction_of(conversation, plan).memory if plan is not None else None
    if plan is None or held is None:
        return
    over = held.total.value - held.capacity_bytes
    answer.add(f"By {format_bytes(over)}." if over > 0 else f"By the figure alone it fits, with {format_bytes(-over)}.")
    memory(conversation, answer, question)


def _too_large(conversation: Conversation, question: Question) -> Plan | None:
    """The plan that is named, else what runs, if it does not fit for certain."""
    named = next(iter(question.plans), conversation.study.plan)
    if named is None:
        return None
    full = whole(conversation, named)
    held = prediction_of(conversation, full).memory
    return full if held is not None and not held.fits else None
