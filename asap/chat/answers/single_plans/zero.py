"""ZeRO-3, which is FSDP in the words of a plan: whether the run has it, and what it would bring."""

import re

from asap.chat.answers.single_plans.directions import no_such_plan, wished_plans
from asap.chat.answers.single_plans.plans import why_not
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.references.wishes import Wish
from asap.chat.understanding.topics.topics import Topic

_NAMED = re.compile(r"\b(?:deepspeed )?zero[- ]?(?:stage[- ]?)?3\b", re.I)


def asks_zero(question: Question) -> bool:
    """Whether it names ZeRO-3, and no degree."""
    return _NAMED.search(question.text) is not None and not question.refs.written


def zero(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """That the axis data is it; where the run has none, the best plan with it."""
    answer.topic = Topic.WHY_NOT
    now = conversation.study.plan
    answer.add("ZeRO-3 is FSDP here, the axis data: parameters, gradients and optimizer state are sharded over it.")
    if now is not None and now.degree("data") > 1:
        whole = now.degree("data") == now.devices
        answer.add(
            f"It is on already: {now} shards them over {'all ' if whole else ''}{now.degree('data')} of {now.devices}"
            " devices."
        )
    if now is None or now.degree("data") < now.devices:
        wish = Wish("data", "more")
        more = wished_plans(conversation, wish)
        for plan in more:
            why_not(conversation, answer, plan)
        if not more:
            no_such_plan(conversation, answer, wish)
