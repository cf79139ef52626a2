"""The plan that a question means, as it would run here."""

from asap.chat.conversation import Conversation
from asap.chat.understanding.question import Question
from asap.chat.understanding.references.partial_plan import filled
from asap.plans import Plan


def whole(conversation: Conversation, plan: Plan) -> Plan:
    """A plan as it would run here: data parallelism over the devices that it leaves, settings of what runs now."""
    study = conversation.study
    return study.complete(filled(study, plan))


def plan_to_test(conversation: Conversation, question: Question) -> Plan | None:
    """The plan that a question names, else the one that was spoken of or is proposed first; never what runs now."""
    plans = [*question.plans, conversation.focus, *conversation.order]
    named = next((plan for plan in plans if plan not in (None, conversation.study.plan)), None)
    return whole(conversation, named) if named is not None else None
