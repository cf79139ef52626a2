"""Which answer a message without evidence gets: by the plans that it names, else by its topic."""

from asap.chat.answers import plans as plan_answers
from asap.chat.answers import ranking as ranking_answers
from asap.chat.answers import run as run_answers
from asap.chat.answers.what_if import what_if
from asap.chat.conversation import Conversation
from asap.chat.evidence import StatedFact
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.changes import is_change
from asap.chat.understanding.mentions import direction, numbers_mentioned, plans_mentioned, plans_written
from asap.chat.understanding.topics import Topic, is_question, topics
from asap.plans import Plan

BARE_NUMBER_TOPICS = {Topic.COMPARE, Topic.EXPLAIN, Topic.MAXTEXT, Topic.SURE, Topic.WHY_NOT}
"""Topics in which a lone digit is the number of a proposal."""

SHORT_MESSAGE_WORDS = 3
"""In a message this short, a lone digit is the number of a proposal as well: "and 2?"."""


def answer_question(
    conversation: Conversation, answer: ReplyBuilder, text: str, supposed: tuple[StatedFact, ...]
) -> None:
    """Answer a message without evidence."""
    asked = topics(text)
    written = [plan for plan in plans_written(text) if plan.devices > 1]
    plans = _plans(conversation, text, asked)
    if _answer_explicit_request(conversation, answer, text, asked, plans):
        return
    if not written and is_change(text):
        answer.topic = Topic.WHAT_IF
        what_if(conversation, answer, text)
    elif any(item.plan is not None for item in supposed):
        answer.topic = Topic.WHAT_IF
        ranking_answers.suppose(conversation, answer, supposed)
    elif Topic.OPINION in asked and not is_question(text):
        answer.topic = Topic.OPINION
        _opinion(conversation, answer, text, written)
    elif Topic.PRINCIPLE in asked and not written:
        answer.topic = Topic.PRINCIPLE
        run_answers.principle(conversation, answer, text)
    elif Topic.RUN in asked and all(plan == conversation.study.plan for plan in plans):
        answer.topic = Topic.RUN
        run_answers.run(conversation, answer)
    elif Topic.SURE in asked and all(conversation.candidate(plan) for plan in plans):
        answer.topic = Topic.SURE
        ranking_answers.sure(conversation, answer, plans)
    elif plans or direction(text):
        _on_plans(conversation, answer, text, asked, plans)
    else:
        _on_topic(conversation, answer, asked)


def _answer_explicit_request(
    conversation: Conversation, answer: ReplyBuilder, text: str, asked: set[Topic], plans: list[Plan]
) -> bool:
    """Answer what is asked for explicitly, whatever else the message says; false if nothing is."""
    missing_rank = [n for n in numbers_mentioned(text, 0, False) if n > len(conversation.proposals)]
    if missing_rank and not plans:
        answer.topic = Topic.PROPOSALS
        answer.add(f"There is no proposal {missing_rank[0]}. These are:")
        ranking_answers.proposals(conversation, answer)
    elif Topic.MAXTEXT in asked and (lead := _lead(conversation, plans)):
        answer.topic = Topic.MAXTEXT
        plan_answers.maxtext(conversation, answer, lead)
    elif topic := next((topic for topic in _EXPLICIT if topic in asked), None):
        answer.topic = topic
        _HANDLERS[topic](conversation, answer)
    else:
        return False
    return True


def _opinion(conversation: Conversation, answer: ReplyBuilder, text: str, written: list[Plan]) -> None:
    plans = written or plan_answers.plans_in_direction(conversation, text)
    if not plans:
        ranking_answers.opinion_without_evidence(conversation, answer)
        return
    for plan in plans:
        plan_answers.why_not(conversation, answer, plan)
    ranking_answers.stays(conversation, answer)


def _on_plans(
    conversation: Conversation, answer: ReplyBuilder, text: str, asked: set[Topic], plans: list[Plan]
) -> None:
    if len(plans) == 1 and Topic.COMPARE in asked:
        plans = list(dict.fromkeys([*plans, *filter(None, [_lead(conversation, [])])]))
    if len(plans) > 1:
        answer.topic = Topic.COMPARE
        plan_answers.compare(conversation, answer, plans)
    elif plans and not plans_written(text) and not asked & {Topic.WHY_NOT, Topic.OPINION}:
        answer.topic = Topic.EXPLAIN
        if Topic.EXPLAIN in asked or is_question(text) or len(text.split()) <= SHORT_MESSAGE_WORDS:
            plan_answers.explain(conversation, answer, plans[0])
        else:
            answer.topic = Topic.OPINION
            ranking_answers.opinion_without_evidence(conversation, answer)
    else:
        answer.topic = Topic.WHY_NOT
        for plan in plans or plan_answers.plans_in_direction(conversation, text):
            plan_answers.why_not(conversation, answer, plan)
        if not answer.lines:
            plan_answers.no_such_plan(conversation, answer, text)


def _on_topic(conversation: Conversation, answer: ReplyBuilder, asked: set[Topic]) -> None:
    answer.topic = next((topic for topic in _HANDLERS if topic in asked), Topic.UNKNOWN)
    lead = _lead(conversation, [])
    if answer.topic in {Topic.UNKNOWN, Topic.OPINION, Topic.HELP} and Topic.EXPLAIN in asked and lead:
        answer.topic = Topic.EXPLAIN
        plan_answers.explain(conversation, answer, lead)
        return
    _HANDLERS.get(answer.topic, run_answers.unknown)(conversation, answer)


def _plans(conversation: Conversation, text: str, asked: set[Topic]) -> list[Plan]:
    """Plans that a message names; one that it only refers to counts if nothing else is asked for."""
    bare = bool(asked & BARE_NUMBER_TOPICS) or len(text.split()) <= SHORT_MESSAGE_WORDS
    focus = conversation.focus if asked <= {*BARE_NUMBER_TOPICS, Topic.UNKNOWN} else None
    order = conversation.order
    found = plans_mentioned(text, order, focus, conversation.study.plan, bare)
    return [plan for plan in found if plan.devices > 1]


def _lead(conversation: Conversation, plans: list[Plan]) -> Plan | None:
    """The plan that is named, else the one under discussion, else the first proposal."""
    order = conversation.order
    return next(iter([*plans, *([conversation.focus] if conversation.focus else []), *order]), None)


_EXPLICIT = (Topic.THANKS, Topic.GREETING, Topic.CHANGE_OF_MIND, Topic.CAPTURE)
_HANDLERS = {
    Topic.THANKS: run_answers.thanks,
    Topic.GREETING: run_answers.help,
    Topic.CHANGE_OF_MIND: ranking_answers.change_of_mind,
    Topic.CAPTURE: run_answers.capture,
    Topic.EVIDENCE: ranking_answers.evidence,
    Topic.SOURCES: run_answers.sources,
    Topic.BOTTLENECK: run_answers.bottleneck,
    Topic.PRECEDENT: run_answers.precedents,
    Topic.FIRST: ranking_answers.first,
    Topic.OPINION: ranking_answers.opinion_without_evidence,
    Topic.PROPOSALS: ranking_answers.proposals,
    Topic.MAXTEXT: ranking_answers.proposals,
    Topic.HELP: run_answers.help,
}
