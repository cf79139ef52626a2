"""A plan that is meant by its step time: "whats 4.11 in tok/s"."""

from dataclasses import replace

from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.throughput import throughput
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.core.errors import AsapError
from asap.plans import Plan


def quotes_step(conversation: Conversation, question: Question) -> bool:
    """Whether it asks for the rate of a plan that only a step time of the list names."""
    open_ = question.topic is Topic.THROUGHPUT and question.change.empty and not question.plans
    return open_ and not question.names_money and _quoted(conversation, question) is not None


def of_quoted_step(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The rate of that plan."""
    plan = _quoted(conversation, question)
    if plan is not None:
        throughput(conversation, answer, replace(question, plans=(plan,), amounts=(), unused=()))


def _quoted(conversation: Conversation, question: Question) -> Plan | None:
    """The one proposal whose step takes so long, as it is shown."""
    said = [one for one in question.amounts if one.unit in {"", "s"} and one.value % 1]
    if len(said) != 1 or len(question.amounts) != 1:
        return None
    digits = len("".join(filter(str.isdigit, said[0].text.partition(".")[2])))
    try:
        steps = [(plan, prediction_of(conversation, plan).step_time) for plan in conversation.order]
    except AsapError:
        return None
    found = [plan for plan, step in steps if step is not None and round(step.value, digits) == said[0].value]
    return found[0] if len(found) == 1 else None
