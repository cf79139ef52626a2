"""A date that something is needed by: "need numbers by friday": what a test takes until then."""

import re

from asap.chat.answers.proposals.testing.test_cost import test_cost
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic

_DAY = (
    r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|satur|sat|sun)(?:day)?|tomorrow|tonight|today|noon|midnight|eo[dwmq]|cob"
    r"|(?:the )?end of (?:the )?(?:day|week|month|quarter|sprint)|next (?:week|month|sprint)|(?:the )?weekend"
    r"|the deadline|the review|(?:\d{1,2}|one|two|three) (?:hours?|days?|weeks?)"
)
_BY = re.compile(rf"\b(?:by|until|till?|before|due|within|no later than)\s+(?:{_DAY})\b", re.I)
_LOOSE = {
    Topic.UNKNOWN, Topic.REPORTED, Topic.TEST_COST, Topic.EXPLAIN, Topic.OPINION, Topic.FIRST, Topic.RUN, Topic.MAXTEXT,
    Topic.THANKS, Topic.OUT_OF_SCOPE,
}  # fmt: skip


def names_deadline(question: Question) -> bool:
    """Whether it says until when something is needed, and asks for no figure of its own."""
    return question.topic in _LOOSE and question.change.empty and _BY.search(question.text) is not None


def deadline(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """How long a test takes; no date is kept, and none changes the order."""
    answer.complete = True
    answer.add("I keep no dates, so the deadline is not recorded and the order stays. What fits in before it:")
    test_cost(conversation, answer, question)
