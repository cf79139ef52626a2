"""Which answer a question gets: by its topic, and by the plans, the change and the numbers in it."""

import re

from asap.chat.answers import named_plans
from asap.chat.answers.by_topic import ANSWERS
from asap.chat.answers.other_runs import changes
from asap.chat.answers.other_runs.chips_for_rate import chips_for_rate, rate_wanted
from asap.chat.answers.other_runs.recomputation_worth import asks_worth_of_recomputation, recomputation_worth
from asap.chat.answers.other_runs.sweep import sweep
from asap.chat.answers.other_runs.what_if import what_if
from asap.chat.answers.proposals import ranking as ranking_answers
from asap.chat.answers.proposals.criteria import asks_choice, rank_by
from asap.chat.answers.proposals.order_since import asks_order_since, order_since
from asap.chat.answers.proposals.test_cost import test_cost
from asap.chat.answers.single_plans.distributed_optimizer import asks_distributed_optimizer, distributed_optimizer
from asap.chat.answers.single_plans.fit_check import asks_fit_check, asks_how_long, fit_check, time_to_compile
from asap.chat.answers.single_plans.named_figures import figures_named, say_figures
from asap.chat.answers.single_plans.placement import asks_placement, placement
from asap.chat.answers.single_plans.technique_worth import technique_worth, techniques_asked
from asap.chat.answers.single_plans.throughput import throughput
from asap.chat.answers.suggestions import suggestions
from asap.chat.answers.talk import hearsay, small_talk
from asap.chat.answers.talk.unmodelled import unmodelled, unmodelled_in
from asap.chat.answers.this_run import profile as profile_answers
from asap.chat.answers.this_run.symptoms import symptom_in, symptoms
from asap.chat.answers.this_run.terms import asks_term, term
from asap.chat.answers.unused_words import unused_words
from asap.chat.conversation import Conversation
from asap.chat.evidence.fact import StatedFact
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.questions import is_question

_PLANNED = {
    Topic.WHY_NOT,
    Topic.UNKNOWN,
    Topic.WHAT_IF,
    Topic.REPORTED,
    Topic.PROPOSALS,
    Topic.RUN,
    Topic.PRINCIPLE,
    Topic.HELP,
}
"""Topics that a plan which is written out overrules."""
_OF_PLANS = {Topic.EXPLAIN, Topic.COMPARE, Topic.UNKNOWN, Topic.EFFICIENCY, Topic.PROPOSALS}
_RATES = re.compile(r"\b(?:mfu|throughput|tok(?:en)?s?(?:/| per | a )s\w*|tps)\b", re.I)
"""Figures of speed that a question wants of the plans that it names."""
_WHETHER = re.compile(r"\b(?:should (?:i|we)|(?:would|does|will) (?:it|that) (?:help|pay)|is it worth)\b", re.I)
"""Asks for a verdict on this run, and not for a rule."""
_LEAST_WORDS, _LONG = 3, 5
"""Words from which a guess at the topic is worth an answer, and beyond which more than a plan is asked for."""


def answer_question(
    conversation: Conversation, answer: ReplyBuilder, question: Question, supposed: tuple[StatedFact, ...] = ()
) -> None:
    """Answer a question; raises AsapError where the engine cannot.

    Args:
        conversation: what was analysed, stated and spoken of.
        answer: where the lines go.
        question: what is asked.
        supposed: facts that it only supposes.
    """
    answer.topic = question.topic
    before = len(answer.lines)
    _dispatch(conversation, answer, question, supposed)
    if unused := unused_words(answer, answer.lines[before:], question):
        answer.add(f"This answer leaves out what you say of: {', '.join(unused)}. Ask for that by itself.")
    _remember(conversation, answer, question)


def _dispatch(
    conversation: Conversation, answer: ReplyBuilder, question: Question, supposed: tuple[StatedFact, ...]
) -> None:
    if question.refs.missing and not question.plans and question.change.empty:
        answer.topic = Topic.PROPOSALS
        answer.add(f"There is no proposal {question.refs.missing[0]}. These are:")
        ranking_answers.proposals(conversation, answer)
    elif any(item.plan is not None for item in supposed):
        answer.topic = Topic.WHAT_IF
        ranking_answers.suppose(conversation, answer, supposed)
    elif nodes := [amount.text for amount in question.unused if amount.unit == "nodes"]:
        small_talk.unread(answer, " and ".join(nodes))
    elif asks_distributed_optimizer(conversation.study, question):
        distributed_optimizer(conversation, answer, question)
    elif (technique := unmodelled_in(question.text)) is not None:
        answer.topic = Topic.WHAT_IF
        unmodelled(answer, technique)
    elif hearsay.tells_of_a_run(question):
        hearsay.unrecorded(conversation, answer, question)
    elif asks_term(question.text) and not question.refs.ranked:
        answer.topic = Topic.TERM
        term(conversation, answer, question.text)
    elif asks_fit_check(question):
        answer.topic = Topic.VERIFY
        fit_check(conversation, answer, question)
    elif asks_how_long(question):
        answer.topic = Topic.TEST_COST
        answer.add(*time_to_compile(conversation))
        test_cost(conversation, answer, question)
    elif asks_placement(question):
        answer.topic = Topic.SHARDING
        placement(conversation, answer, question)
    elif asks_choice(question):
        answer.topic = Topic.RANK_BY
        rank_by(conversation, answer, question)
    elif asks_order_since(question):
        answer.topic = Topic.PROPOSALS
        order_since(conversation, answer)
    elif (symptom := symptom_in(question)) is not None:
        answer.topic = Topic.BOTTLENECK
        symptoms(conversation, answer, question, symptom)
    elif figures := figures_named(question):
        answer.topic = Topic.MEMORY if all(figure.title == "host memory" for figure in figures) else Topic.BOTTLENECK
        say_figures(conversation, answer, question, figures)
    elif (rate := rate_wanted(question)) is not None:
        answer.topic = Topic.LARGEST
        chips_for_rate(conversation, answer, rate)
    elif question.sweep is not None and question.topic in changes.CHANGEABLE:
        answer.topic = Topic.WHAT_IF
        sweep(conversation, answer, question.sweep, next(iter(question.plans), None))
    elif question.change.network or question.change.network_factor:
        answer.topic = Topic.WHAT_IF
        what_if(conversation, answer, question.change)
    elif question.plans and question.topic in _OF_PLANS and _RATES.search(question.text):
        answer.topic = Topic.THROUGHPUT
        throughput(conversation, answer, question)
    elif asks_worth_of_recomputation(question):
        recomputation_worth(conversation, answer, question)
    elif axes := techniques_asked(question):
        for axis in axes:
            technique_worth(conversation, answer, question, axis)
    elif (
        question.refs.wish is not None
        and not question.refs.written
        and question.change.empty
        and _WHETHER.search(question.text)
    ):
        named_plans.wished(conversation, answer, question.refs.wish)
    elif changes.wants_change(question):
        changes.named_change(conversation, answer, question)
    elif question.operations and question.topic not in {Topic.ROOFLINE, Topic.COLLECTIVES, Topic.BOTTLENECK}:
        answer.topic = Topic.OPERATIONS
        profile_answers.operations(conversation, answer, question)
    elif (
        question.topic is Topic.OPINION
        and (question.refs.written or question.refs.wish)
        and not is_question(question.text)
    ):
        named_plans.opinion(conversation, answer, question)
    elif question.refs.written and (question.topic in _PLANNED or question.topic is Topic.WORTH_IT):
        named_plans.about_plans(conversation, answer, question)
    elif question.topic in ANSWERS:
        ANSWERS[question.topic].answer(conversation, answer, question)
    elif question.plans:
        if question.topic is Topic.UNKNOWN and len(question.text.split()) > _LONG:
            answer.add("Of that I read the plan alone; this is what I know of it:")
        named_plans.about_plans(conversation, answer, question)
    elif (guess := _guess(question)) is not None:
        answer.topic = guess
        small_talk.taken_as(answer, ANSWERS[guess].example)
        ANSWERS[guess].answer(conversation, answer, question)
    else:
        changes.not_understood(conversation, answer, question, suggestions(question))


def _guess(question: Question) -> Topic | None:
    """The nearest topic, where it is near enough for an answer with a caution."""
    lone = not all(amount.unit for amount in question.unused)
    if (
        lone
        or not is_question(question.text)
        or question.refs.wish is not None
        or len(question.text.split()) < _LEAST_WORDS
    ):
        return None
    return question.perhaps if question.perhaps in ANSWERS else None


def _remember(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Keep what the next question may leave out."""
    known = {topic.value for topic in Topic}
    topic = Topic(answer.topic) if answer.topic in known else None
    goes_on = question.of_scenario is not None or question.ellipsis
    change = question.change if not question.change.empty else (question.context.change if goes_on else None)
    priced = topic is Topic.THROUGHPUT
    tokens, dollars = (question.tokens, question.dollars) if priced else (None, None)
    wished = (answer.focus,) if question.refs.wish and topic in {Topic.WHY_NOT, Topic.WHAT_IF} and answer.focus else ()
    plans = question.plans or (question.context.plans if goes_on or tokens else wished)
    operations = question.operations or answer.operations
    criterion = (question.context.criterion if goes_on else question.text) if topic is Topic.RANK_BY else None
    update = {"criterion": criterion, "topic": topic, "plans": plans, "change": change, "operations": operations}
    answer.context = question.context.model_copy(update={**update, "tokens": tokens, "dollars": dollars})
