"""That a plan was run, without what came of it: "i ran 2" · "trying the first one now"."""

import re

from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import is_question
from asap.plans import Plan

_RAN = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|so|and|we|i|just|already|have|we've|i've|i'm|we're|now|are|am)\W+)*"
    r"(?:ran|run(?:ning)?|tried|trying|tested|testing|launched|launching|started|starting|kicked off|switched to)\b",
    re.I,
)
_FEW = 7
"""Words of a line that tells no more."""


def tells_of_trial(conversation: Conversation, question: Question) -> bool:
    """Whether it says no more than that a plan was run."""
    text = question.text
    told = _RAN.search(text) is not None and not is_question(text) and len(text.split()) <= _FEW
    return told and _tried(conversation, question) is not None and not any(a.unit for a in question.amounts)


def trial(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Asks for what came of it; what is reported next is of that plan."""
    plan = _tried(conversation, question)
    if plan is None:
        return
    answer.focus, answer.complete = whole(conversation, plan), True
    answer.add(
        f'What came of {answer.focus}? Say its step, as in "{answer.focus} measured 2.4 s", or that it ran out of'
        " memory; or paste its log. Nothing is recorded yet."
    )


def _tried(conversation: Conversation, question: Question) -> Plan | None:
    named = [mention.plan for mention in question.refs.mentions if mention.way != "pointing"]
    only = named[0] if len(named) == 1 and question.change.empty else None
    return None if only is None or whole(conversation, only) == conversation.study.plan else only
