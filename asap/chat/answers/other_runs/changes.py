"""Answers to a question that names a change, or numbers that no reading of it uses."""

import re
from collections.abc import Sequence

from asap.chat.answers.named_plans import about_plans
from asap.chat.answers.other_runs.what_if import what_if
from asap.chat.answers.shown_figures import quotes_figure
from asap.chat.answers.single_plans.directions import wished_plans
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.answers.talk import small_talk
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.follow_up import goes_on
from asap.chat.understanding.quantities.amounts import LARGEST_AMOUNT, Amount
from asap.chat.understanding.quantities.changes import instead_of_policy, is_of_settings
from asap.chat.understanding.quantities.things import things_kept
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.questions import asks_why, is_question
from asap.chat.understanding.words.voices import is_order
from asap.chat.understanding.words.worth import asks_verdict, asks_worth
from asap.core.errors import PlanError
from asap.plans import Plan, Remat
from asap.proposals.reasons.explain import reasons, trade_offs

_THAT = re.compile(r"\b(?:that|there|(?:with|on|in) it)\b", re.I)
"""Words for the plan that was spoken of, whose settings are to be others."""
_OF_SPEED = re.compile(
    r"\b(?:throughput|tokens?|toks?|tps|mfu|speed\w*|fast\w*|quick\w*|steps?|times?|short\w*|t?flop\w*|utili\w+)\b",
    re.I,
)
"""Words for what a target is of; without them, what is to become larger is a size of the run."""
_FIRST = 2
"""Reasons and costs of a short answer."""
_TO_FIT = re.compile(
    r"\b(?:fits?|oom\w*|enough|possible|feasible|doable|room|squeeze)\b|\b(?:ok|okay|fine|good|done)(?=\W*$)", re.I
)
"""Asks whether a run fits with what is changed."""
_VALID = re.compile(r"\b(?:legal|valid|allowed|permitted|divid\w+|divisible)\b", re.I)
"""Asks whether a plan can run at all."""
CHANGEABLE = {
    Topic.WHAT_IF, Topic.WHY_NOT, Topic.UNKNOWN, Topic.MEMORY, Topic.THROUGHPUT, Topic.RUN, Topic.REPORTED,
    Topic.FITTING, Topic.WORTH_IT, Topic.LARGEST,
    Topic.PROPOSALS,
}  # fmt: skip
"""Topics in which a named change is evaluated."""

_WEIGHED = {Topic.NUMERICS, Topic.TERM, Topic.PRINCIPLE}
"""Topics in which a change is evaluated where the line asks if it pays: "does accumulation slow us down?"."""
_ASKED = {Topic.BOTTLENECK, Topic.OPINION}
"""Topics in which a change is evaluated where the line asks something."""
_COUNTED = {Topic.WHAT_IF, Topic.UNKNOWN, Topic.WHY_NOT}
"""Topics in which a number without a place means that the question was not understood."""


def wants_change(question: Question) -> bool:
    """Whether a change is named that is to be evaluated."""
    asked = asks_why(question.text) or is_question(question.text)
    of_size = {Topic.TARGET} if not _OF_SPEED.search(question.text) else set[Topic]()
    topics = CHANGEABLE | of_size | (_ASKED if asked else set()) | (_WEIGHED if asks_worth(question.text) else set())
    if question.change.empty or question.topic not in topics:
        return False
    if question.topic in {Topic.MEMORY, Topic.THROUGHPUT}:
        supposed = question.hypothetical or bool(question.change.state)
        return supposed and not question.tokens and not question.dollars
    return True


def named_change(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What the change brings; numbers that are left over are asked about first."""
    answer.topic = Topic.WHAT_IF
    left = [amount for amount in question.unused if amount.unit not in {"other"}]
    left += [amount for amount in question.amounts if not 0 < amount.value < LARGEST_AMOUNT]
    left = [amount for amount in left if not quotes_figure(conversation, amount)]
    if left:
        small_talk.unread(answer, " and ".join(amount.text for amount in left))
        return
    plan = next(iter(question.plans), None)
    if plan is None and question.ellipsis and question.context.plans:
        plan = question.context.plans[0]
    if plan is None and _THAT.search(question.text) and not (question.change.counts or question.change.hardware):
        plan = conversation.focus
    if plan is None and (policy := instead_of_policy(question.text)) is not None:
        plan = _having(conversation, policy)
    if plan is None and goes_on(question.text) and is_of_settings(question.change):
        plan = _just_reported(conversation)
    if plan is None and question.refs.wish is not None:
        plan = next(iter(wished_plans(conversation, question.refs.wish)), None)
    full = whole(conversation, plan) if plan is not None else None
    before, weigh = list(answer.lines), asks_verdict(question.text)
    to_fit = _TO_FIT.search(question.text) is not None
    try:
        what_if(conversation, answer, question.change, full, weigh=weigh, to_fit=to_fit)
    except PlanError:
        other = question.change.with_other_examples
        if other == question.change:
            raise
        answer.lines = before
        what_if(conversation, answer, other, full)
    if _VALID.search(question.text) and len(answer.lines) > len(before):
        answer.lines.insert(len(before), "Valid: the degrees divide as they must.")
    if question.ellipsis and (kept := things_kept(question.text)):
        answer.add(f"Kept as on record: {' and '.join(sorted(thing.replace('_', ' ') for thing in kept))}.")
    if asks_why(question.text) and answer.focus is not None:
        answer.add(*(f"+ {reason}" for reason in reasons(conversation.study, answer.focus)[:_FIRST]))
        answer.add(*(f"- {cost}" for cost in trade_offs(conversation.study, answer.focus)[:_FIRST]))


def _just_reported(conversation: Conversation) -> Plan | None:
    """The one plan that the last line told of, if it is not what runs now."""
    told = {fact.plan for fact in conversation.latest if fact.plan is not None}
    return next(iter(told)) if len(told) == 1 and conversation.study.plan not in told else None


def _having(conversation: Conversation, policy: Remat) -> Plan | None:
    """The plan of which a rematerialisation is to be another one: what runs now, else the first proposal with it."""
    now = conversation.study.plan
    having = [plan for plan in conversation.order if plan.remat == policy]
    return None if (now is not None and now.remat == policy) or not having else having[0]


def no_change(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """A what-if that names no change that can be read."""
    if question.plans or question.refs.wish:
        about_plans(conversation, answer, question)
    elif question.unused:
        _unread(answer, question, question.unused)
    else:
        answer.add(
            "Say what changes: batch, sequence, chips, slices, precision, optimizer, layers, experts,"
            " rematerialisation, offloading,"
            ' microbatches, or a whole plan, as in "batch 512 and sequence 8192".'
        )


def not_understood(
    conversation: Conversation, answer: ReplyBuilder, question: Question, like_it: Sequence[str] = ()
) -> None:
    """A question of no topic: its wish, its numbers, or that it is not understood, with questions ``like_it``."""
    numbers = [amount for amount in question.unused if amount.unit not in {"", "other"}]
    if question.refs.wish is not None:
        about_plans(conversation, answer, question)
    elif numbers and question.topic in _COUNTED:
        _unread(answer, question, numbers)
    else:
        answer.topic = Topic.UNKNOWN
        if like_it:
            small_talk.nearest(answer, like_it, near=question.perhaps is not None)
        else:
            small_talk.unknown(conversation, answer)


def _unread(answer: ReplyBuilder, question: Question, numbers: Sequence[Amount]) -> None:
    """Numbers without a place: asked about, unless the line asks for nothing: "nsys says 15 % of X"."""
    asked = is_question(question.text) or is_order(question.text)
    small_talk.unread(answer, " and ".join(amount.text for amount in numbers), asked=asked)
