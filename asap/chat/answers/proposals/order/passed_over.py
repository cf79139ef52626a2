"""The other proposals, where one is not wanted and no reason is given: "skip 1", or where others are: "others?"."""

import re

from asap.chat.answers.phrasing import line
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.plans import Plan

_PASSES = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|no|nah|well|hm+|so|but|please|let'?s)\W+)*(?:skip|not|leave out|anything but"
    r"|everything but|drop|exclude)\s+"
    r"(?:the\s+)?(?:proposal|option|number|plan)?\s*(?:#?\d|first|second|third)(?:\s+one)?(?:\W+(?:please|then))*\W*$",
    re.I,
)
_OTHERS = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|and|so|well|hm+|any|got|the|what about|no)\W+)*(?:others?|alternatives?|what else"
    r"|anything else|the rest|other (?:ones?|options?|ideas?))\W*$",
    re.I,
)


def asks_others(question: Question) -> bool:
    """Whether it asks for other proposals and names none: "others?"."""
    return _OTHERS.match(question.text) is not None


def passed_over(question: Question) -> Plan | None:
    """The one proposal that is not wanted: "skip 1"."""
    named = question.refs.ranked
    return named[0] if len(named) == 1 and _PASSES.match(question.text) else None


def others_than(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What comes first beside it; nobody has measured it, so it stays on the list."""
    unwanted = passed_over(question)
    left = [one for one in conversation.proposals if one.plan != unwanted]
    answer.complete = True
    answer.add(f"Without {unwanted}:" if left else "No other plan is proposed.")
    answer.add(*(line(conversation, one, conversation.order.index(one.plan) + 1) for one in left))
    answer.focus = left[0].plan if left else None
    answer.add(
        "A wish is no fact, so nothing is recorded. If something rules it out, state that: it failed, ran out of"
        ' memory, or a limit, as in "tp must be at least 4".'
    )
