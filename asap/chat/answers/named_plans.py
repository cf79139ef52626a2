"""Answers on plans that a question names: one explained or weighed, two compared, more in a table."""

import re
from dataclasses import replace

from asap.chat.answers.proposals.order import ranking as ranking_answers
from asap.chat.answers.proposals.order import verdicts
from asap.chat.answers.single_plans import directions
from asap.chat.answers.single_plans import plans as plan_answers
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.references.partial_plan import named_axes
from asap.chat.understanding.references.wishes import Wish
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.details import wants_details
from asap.plans import Plan

_KEPT = re.compile(
    r"\b(?:keep\w*|kept|stays?|stay\w*|leav\w+|unchanged|fixed|stick\w*|hold\w*|without (?:touching|changing)"
    r"|(?:what(?:'s| is)?|anything|something|best(?: one| plan)?) (?:left |possible |else )?with)\b",
    re.I,
)
_BESIDE = re.compile(
    r"\b(?:compar\w*|vs\.?|versus|against|than|next to|beside|side by side|differ\w*"
    r"|tabl\w*|better|worse|or|same|and)\b",
    re.I,
)
"""Words that set a plan beside another one."""
_ALL_ELSE = re.compile(
    r"\b(?:rest|(?:everything|all|anything|nothing) else|(?:the )?other(?:s| axes)?|as (?:is|it is|now))\b", re.I
)
"""What is kept is not what is named."""


def about_plans(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What a question wants of plans that it names, where nothing else says it."""
    plans = list(question.plans)
    if question.refs.written and question.topic is not Topic.COMPARE:
        others = [plan for plan in plans if whole(conversation, plan) != conversation.study.plan]
        plans = others if others else plans[:1]
    keeps = _KEPT.search(question.text) and not _ALL_ELSE.search(question.text)
    keeps = keeps and any(_leaves_open(conversation, plan) for plan in plans)
    if len(plans) == 1 and question.refs.written and keeps:
        answer.topic = Topic.WHAT_IF
        directions.best_with(conversation, answer, plans[0])
    elif len(plans) == 1 and question.refs.wish is not None and question.refs.wish.sense == "only":
        answer.topic = Topic.COMPARE
        plan_answers.compare(conversation, answer, [*plans, *directions.wished_plans(conversation, question.refs.wish)])
    elif len(plans) > 1:
        answer.topic = Topic.COMPARE
        plan_answers.compare(conversation, answer, plans, question.text)
    elif plans and (question.refs.written or (question.topic is Topic.WHY_NOT and question.refs.wish is None)):
        answer.topic = Topic.WHY_NOT
        plan_answers.why_not(conversation, answer, plans[0])
    elif plans:
        answer.topic = Topic.EXPLAIN
        explain(conversation, answer, question)
    elif question.refs.wish is not None:
        wished(conversation, answer, question.refs.wish)
    else:
        ranking_answers.proposals(conversation, answer)


def _leaves_open(conversation: Conversation, plan: Plan) -> bool:
    """Whether a plan names no degree of an axis, beside data parallelism, that what runs now uses."""
    now = conversation.study.plan
    rest = set(named_axes(now)) - {"data", "replica", *named_axes(plan)} if now is not None else set()
    return bool(rest) or len(named_axes(plan)) < 2


def wished(conversation: Conversation, answer: ReplyBuilder, wish: Wish) -> None:
    """The best plan in the direction that is named, or that there is none."""
    answer.topic = Topic.WHY_NOT
    for plan in directions.wished_plans(conversation, wish):
        plan_answers.why_not(conversation, answer, plan)
    if not answer.lines:
        directions.no_such_plan(conversation, answer, wish)


def opinion(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """An opinion on plans: what the engine expects of them, and that it changes nothing."""
    in_direction = directions.wished_plans(conversation, question.refs.wish) if question.refs.wish else []
    for plan in question.refs.written or in_direction:
        plan_answers.why_not(conversation, answer, plan)
    if not answer.lines:
        ranking_answers.opinion_without_evidence(conversation, answer)
        return
    ranking_answers.stays(conversation, answer)


def compare(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Two plans beside each other, or several in a table."""
    plans = list(question.plans)
    if len(plans) == 1 and question.refs.written and not _BESIDE.search(question.text):
        about_plans(conversation, answer, replace(question, topic=Topic.WHY_NOT))
        return
    if len(plans) == 1 and (lead := _lead(conversation, [])) and lead != plans[0]:
        plans.append(lead)
    if len(plans) > 2 or not plans or re.search(r"\btabl|side by side|overview|memory|hbm", question.text, re.I):
        chosen = plans or (list(question.context.plans) if len(question.context.plans) > 1 else conversation.order)
        verdicts.table(conversation, answer, chosen)
    elif len(plans) == 2:
        plan_answers.compare(conversation, answer, plans, question.text)
    else:
        plan_answers.explain(conversation, answer, plans[0], detailed=wants_details(question.text))


def sure(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """How sure the predictions of the plans are."""
    plans = list(question.plans)
    if all(conversation.candidate(plan) for plan in plans):
        ranking_answers.sure(conversation, answer, plans)
    else:
        about_plans(conversation, answer, question)


def explain(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What speaks for the plan that is named, or that was spoken of last."""
    if len(question.plans) > 1:
        about_plans(conversation, answer, question)
    elif lead := _lead(conversation, list(question.plans)):
        if question.refs.wish is not None:
            directions.correct_premise(conversation, answer, lead, question.refs.wish)
        axis = question.refs.wish.axis if question.refs.wish is not None else None
        plan_answers.explain(conversation, answer, lead, axis=axis, detailed=wants_details(question.text))
    else:
        ranking_answers.proposals(conversation, answer)


def maxtext(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What to paste into the launcher for it; of what runs now where nothing else is named."""
    others = [plan for plan in question.plans if plan != conversation.study.plan]
    if lead := _lead(conversation, others or list(question.plans)):
        plan_answers.maxtext(conversation, answer, lead)
    else:
        ranking_answers.proposals(conversation, answer)


def _lead(conversation: Conversation, plans: list[Plan]) -> Plan | None:
    """The plan that is named, else the one under discussion, else the first proposal."""
    return next(iter([*plans, *([conversation.focus] if conversation.focus else []), *conversation.order]), None)
