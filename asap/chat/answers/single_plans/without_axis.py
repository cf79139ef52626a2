"""A proposal without one of its axes: "3 minus the hsdp", "2 without pp": its devices go to the data axis."""

import re

from asap.chat.answers.single_plans.plans import compare
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.references.partial_plan import data_axis
from asap.chat.understanding.words.questions import asks_why
from asap.plans import Plan
from asap.plans.axes import MEANINGS, Axis
from asap.plans.validity import violations

_TAKES_AWAY = re.compile(r"\b(?:without|minus|sans|except|but no|no more|drop\w*|less the|not the)\b", re.I)


def asks_without_axis(conversation: Conversation, question: Question) -> bool:
    """Whether it names one proposal and an axis that this is to do without."""
    wish = question.refs.wish
    without = wish is not None and takes_away(question.text) and question.sweep is None
    without = without and not question.refs.written
    return without and len(question.refs.ranked) == 1 and question.change.empty and not asks_why(question.text)


def takes_away(text: str) -> bool:
    """Whether it says that something is left out: "minus the hsdp", "but no hsdp"."""
    return _TAKES_AWAY.search(text) is not None


def without_axis(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The proposal beside what it is without the axis, or that it does not use it."""
    wish = question.refs.wish
    if wish is None:
        return
    (plan,) = question.refs.ranked
    if plan.degree(wish.axis) == 1:
        answer.focus = plan
        answer.add(f"Proposal {conversation.order.index(plan) + 1}, {plan}, does not use {MEANINGS[wish.axis]}.")
        return
    other = _without(conversation, plan, wish.axis)
    compare(conversation, answer, [other, plan])
    answer.focus = other


def _without(conversation: Conversation, plan: Plan, axis: Axis) -> Plan:
    """The plan with the devices of an axis on the other kind of data parallelism, or on the run's own."""
    study, missing = conversation.study, getattr(plan.ici, axis)
    other: Axis = "data" if axis == "replica" else "replica" if axis == "data" else data_axis(study)
    moved = plan.with_ici(**{axis: 1, other: getattr(plan.ici, other) * missing})
    return study.with_micro_batch(moved) if violations(moved, study.constraints) else moved
