"""An axis that is said to be in use: "we already use cp", "tp is on": as it is on record, or asked for the plan."""

import re

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import is_question
from asap.plans.axes import MEANINGS, WORDS, Axis

_AXIS = r"(?P<axis>tp|pp|cp|ep|fsdp|(?:tensor|pipeline|context|expert)(?: parallel\w*)?)"
_SAYS = re.compile(
    r"^\W*(?:(?:but|and|btw|fyi|no|well|ok|so)\W+)*"
    rf"(?:(?:we|i)(?:'re| are)?\s+(?:already\s+|do\s+|actually\s+)*(?:use|using|have|run|running)(?: with)?\s+{_AXIS}"
    rf"|{_AXIS.replace('axis', 'other')}\s+(?:is\s+)?(?:already\s+)?(?:on|in use|enabled))"
    r"(?:\s+(?:already|today|now|here|too|tho|though|btw))*\W*$",
    re.I,
)


def says_axis_in_use(question: Question) -> bool:
    """Whether it says, and does not ask, that an axis is used, and names no degree."""
    return _SAYS.match(question.text) is not None and not is_question(question.text)


def axis_in_use(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The degree on record; where that is one, how to state the plan that runs."""
    found, plan = _SAYS.match(question.text), conversation.study.plan
    if found is None:
        return
    axis: Axis = WORDS[(found["axis"] or found["other"]).lower().split()[0]]
    answer.complete = True
    degree = plan.degree(axis) if plan is not None else 1
    if degree > 1:
        answer.add(f"Yes: {MEANINGS[axis]} is on record with {axis}={degree} ({plan}).")
        return
    answer.add(
        f"Not on record: what runs now is {plan or 'not known'}, without {MEANINGS[axis]}. Nothing is recorded. If it"
        f' runs otherwise, state the plan, as in "we run {axis}=2 …" with every degree.'
    )
