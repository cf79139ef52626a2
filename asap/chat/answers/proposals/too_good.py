"""A gain that is hard to believe: "1 sounds too good to be true", "20 % for just remat, really?": what it rests on."""

import re

from asap.chat.answers.proposals.order import ranking
from asap.chat.answers.single_plans.downsides import asks_downsides
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.plans import Plan

_DOUBTS = re.compile(
    r"\bto+ good(?: to be true)?\b|\bhard to believe\b|\bunbelievable\b|\bno way\b|\bseriously\b|\bunrealistic\b"
    r"|\bfishy\b"
    r"|\b(?:too |very |wildly |overly )?optimistic\b|\bsuspicious\w*|\bcan(?:'t| ?not) be (?:right|true|real)\b"
    r"|\breally\W*\?|\bsounds? (?:like )?(?:magic|wrong|off|like a lot)\b|\bskeptical|\bsceptical",
    re.I,
)


def doubts_gain(conversation: Conversation, question: Question) -> bool:
    """Whether it doubts the gain of a proposal, by its number or by the figure of it."""
    doubts = _DOUBTS.search(question.text) is not None and not asks_downsides(question) and not question.refs.written
    return doubts and _whose(conversation, question) is not None


def what_gain_rests_on(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The interval, and what it is based on."""
    if (plan := _whose(conversation, question)) is not None:
        ranking.sure(conversation, answer, [plan])


def _whose(conversation: Conversation, question: Question) -> Plan | None:
    """The proposal that is named, else the first whose gain is quoted, to a whole per cent."""
    if question.refs.ranked:
        return question.refs.ranked[0]
    said = {round(abs(amount.value)) for amount in question.amounts if amount.unit == "%"}
    for candidate in conversation.proposals:
        relative = candidate.prediction.relative_step_time
        gain = abs(relative.value - 1) * 100 if relative is not None else None
        if gain is not None and {int(gain), round(gain)} & said:
            return candidate.plan
    return None
