"""Which answer a question gets: by its topic, and by the plans, the change and the numbers in it."""

import re
from collections.abc import Callable

from asap.chat.answers import beyond, figures, flags, measurements, next_test, small_talk, verdicts
from asap.chat.answers import plans as plan_answers
from asap.chat.answers import profile as profile_answers
from asap.chat.answers import ranking as ranking_answers
from asap.chat.answers import run as run_answers
from asap.chat.answers.what_if import what_if
from asap.chat.conversation import Conversation
from asap.chat.evidence import Claim, StatedFact
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities import LARGEST_AMOUNT
from asap.chat.understanding.question import Question
from asap.chat.understanding.questions import is_question
from asap.chat.understanding.topics import Topic
from asap.plans import Plan

CHANGEABLE = {Topic.WHAT_IF, Topic.WHY_NOT, Topic.UNKNOWN, Topic.MEMORY, Topic.THROUGHPUT, Topic.RUN, Topic.TOLD}
"""Topics in which a named change is evaluated."""

_PLANNED = {
    Topic.WHY_NOT,
    Topic.UNKNOWN,
    Topic.WHAT_IF,
    Topic.TOLD,
    Topic.PROPOSALS,
    Topic.RUN,
    Topic.PRINCIPLE,
    Topic.HELP,
}
"""Topics that a plan which is written out overrules."""

_COUNTED = {Topic.WHAT_IF, Topic.UNKNOWN, Topic.WHY_NOT}
"""Topics in which a number without a place means that the question was not understood."""


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
    _dispatch(conversation, answer, question, supposed)
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
    elif _wants_change(question):
        _change(conversation, answer, question)
    elif question.operations and question.topic not in {Topic.ROOFLINE, Topic.COLLECTIVES, Topic.BOTTLENECK}:
        answer.topic = Topic.OPERATIONS
        profile_answers.operations(conversation, answer, question)
    elif (
        question.topic is Topic.OPINION
        and (question.refs.written or question.refs.wish)
        and not is_question(question.text)
    ):
        _opinion(conversation, answer, question)
    elif question.refs.written and question.topic in _PLANNED:
        _plans(conversation, answer, question)
    elif question.topic in _ANSWERS:
        _ANSWERS[question.topic](conversation, answer, question)
    elif question.plans:
        _plans(conversation, answer, question)
    else:
        _unknown(conversation, answer, question)


def _wants_change(question: Question) -> bool:
    if question.change.empty or question.topic not in CHANGEABLE:
        return False
    if question.topic in {Topic.MEMORY, Topic.THROUGHPUT}:
        return question.hypothetical and not question.tokens and not question.dollars
    return True


def _change(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    answer.topic = Topic.WHAT_IF
    left = [amount for amount in question.unused if amount.unit not in {"other"}]
    left += [amount for amount in question.amounts if amount.value >= LARGEST_AMOUNT]
    if left:
        small_talk.unread(answer, " and ".join(amount.text for amount in left))
        return
    plan = next(iter(question.plans), None)
    if plan is None and question.ellipsis and question.context.plans:
        plan = question.context.plans[0]
    whole = plan_answers.whole(conversation, plan) if plan is not None else None
    what_if(conversation, answer, question.change, whole)


def _beside_record(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """A figure of somebody else beside the one on record: neither is dropped in silence."""
    said = [amount for amount in question.amounts if amount.unit == "s"]
    known = [fact for fact in conversation.evidence if fact.claim is Claim.STEP_TIME]
    if said and known:
        answer.add(f"On record is: {known[-1]}. {said[0].text} is not taken, as it is hearsay. Which one is right?")
        answer.add(f'If it is the new one, say: "it was {said[0].text}, not {known[-1].value:g} s".')


def _opinion(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    wished = plan_answers.wished_plans(conversation, question.refs.wish) if question.refs.wish else []
    for plan in question.refs.written or wished:
        plan_answers.why_not(conversation, answer, plan)
    if not answer.lines:
        ranking_answers.opinion_without_evidence(conversation, answer)
        return
    ranking_answers.stays(conversation, answer)


def _plans(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What a question wants of plans that it names, where nothing else says it."""
    plans = list(question.plans)
    if len(plans) > 1:
        answer.topic = Topic.COMPARE
        plan_answers.compare(conversation, answer, plans)
    elif plans:
        written = bool(question.refs.written) or question.topic is Topic.WHY_NOT
        answer.topic = Topic.WHY_NOT if written else Topic.EXPLAIN
        (plan_answers.why_not if written else plan_answers.explain)(conversation, answer, plans[0])
    elif question.refs.wish is not None:
        answer.topic = Topic.WHY_NOT
        for plan in plan_answers.wished_plans(conversation, question.refs.wish):
            plan_answers.why_not(conversation, answer, plan)
        if not answer.lines:
            plan_answers.no_such_plan(conversation, answer, question.refs.wish)
    else:
        ranking_answers.proposals(conversation, answer)


def _first(conversation: Conversation, answer: ReplyBuilder) -> None:
    tested = next_test.outcomes(conversation)
    (next_test.next_test if tested else ranking_answers.first)(conversation, answer)


def _compare(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    plans = list(question.plans)
    if len(plans) == 1 and (lead := _lead(conversation, [])) and lead != plans[0]:
        plans.append(lead)
    if len(plans) > 2 or not plans or re.search(r"\btabl|side by side|overview|memory|hbm", question.text, re.I):
        chosen = plans or (list(question.context.plans) if len(question.context.plans) > 1 else conversation.order)
        verdicts.table(conversation, answer, chosen)
    elif len(plans) == 2:
        plan_answers.compare(conversation, answer, plans)
    else:
        plan_answers.explain(conversation, answer, plans[0])


def _sure(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    plans = list(question.plans)
    if all(conversation.candidate(plan) for plan in plans):
        ranking_answers.sure(conversation, answer, plans)
    else:
        _plans(conversation, answer, question)


def _explain(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    if len(question.plans) > 1:
        _plans(conversation, answer, question)
    elif lead := _lead(conversation, list(question.plans)):
        plan_answers.explain(conversation, answer, lead)
    else:
        ranking_answers.proposals(conversation, answer)


def _maxtext(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    if lead := _lead(conversation, list(question.plans)):
        plan_answers.maxtext(conversation, answer, lead)
    else:
        ranking_answers.proposals(conversation, answer)


def _precedents(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    run_answers.precedents(conversation, answer)
    if re.search(r"\bwhy\b|\bdifferen", question.text, re.I):
        answer.add(
            "A precedent is one run of another model: it is weighed by how like it is, not copied. The prediction here"
            " scales what this run's profile or architecture shows."
        )


def _what_if(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """A what-if that names no change that can be read."""
    if question.plans or question.refs.wish:
        _plans(conversation, answer, question)
    elif question.unused:
        small_talk.unread(answer, " and ".join(amount.text for amount in question.unused))
    else:
        answer.add(
            "Say what changes: batch, sequence, chips, slices, precision, optimizer, layers, experts,"
            " rematerialisation,"
            ' microbatches, or a whole plan, as in "batch 512 and sequence 8192".'
        )


def _unknown(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    numbers = [amount for amount in question.unused if amount.unit]
    if question.refs.wish is not None:
        _plans(conversation, answer, question)
    elif numbers and question.topic in _COUNTED:
        small_talk.unread(answer, " and ".join(amount.text for amount in numbers))
    else:
        answer.topic = Topic.UNKNOWN
        small_talk.unknown(conversation, answer)


def _told_otherwise(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    _beside_record(conversation, answer, question)
    ranking_answers.opinion_without_evidence(conversation, answer)


def _told(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """It sounds like a report, and no figure or outcome in it can be recorded."""
    answer.topic = Topic.OPINION
    _beside_record(conversation, answer, question)
    subject = str(question.plans[0]) if question.plans else "which plan"
    answer.add(f"I cannot take a fact from that: which step time was measured, for {subject}? Nothing is recorded.")
    answer.add('Write it like "proposal 1 measured 2.1 s", "the baseline takes 2.4 s", "our batch is 512".')


def _lead(conversation: Conversation, plans: list[Plan]) -> Plan | None:
    """The plan that is named, else the one under discussion, else the first proposal."""
    return next(iter([*plans, *([conversation.focus] if conversation.focus else []), *conversation.order]), None)


def _remember(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Keep what the next question may leave out."""
    known = {topic.value for topic in Topic}
    topic = Topic(answer.topic) if answer.topic in known else None
    goes_on = question.of_scenario is not None or question.ellipsis
    change = question.change if not question.change.empty else (question.context.change if goes_on else None)
    tokens = question.tokens if topic is Topic.THROUGHPUT else None
    plans = question.plans or (question.context.plans if goes_on or tokens else ())
    operations = question.operations or answer.operations
    update = {"topic": topic, "plans": plans, "change": change, "tokens": tokens, "operations": operations}
    answer.context = question.context.model_copy(update=update)


_Answer = Callable[[Conversation, ReplyBuilder, Question], None]
_Short = Callable[[Conversation, ReplyBuilder], None]


def _short(answered: _Short) -> _Answer:
    return lambda conversation, answer, question: answered(conversation, answer)


_ANSWERS: dict[Topic, _Answer] = {
    Topic.THANKS: _short(small_talk.thanks),
    Topic.GREETING: _short(small_talk.greeting),
    Topic.HELP: _short(small_talk.help),
    Topic.OUT_OF_SCOPE: _short(small_talk.out_of_scope),
    Topic.SERVING: _short(beyond.serving),
    Topic.LEARNING: _short(beyond.learning),
    Topic.HOSTILE: _short(small_talk.hostile),
    Topic.MAXTEXT: _maxtext,
    Topic.XLA_FLAGS: _short(flags.xla_flags),
    Topic.CHANGE_OF_MIND: _short(ranking_answers.change_of_mind),
    Topic.CAPTURE: _short(run_answers.capture),
    Topic.OPINION: _told_otherwise,
    Topic.FALSE_CLAIM: lambda c, a, q: ranking_answers.false_claim(c, a, q.plans),
    Topic.SURE: _sure,
    Topic.BASIS: _short(ranking_answers.basis_of),
    Topic.WORTH_IT: lambda c, a, q: verdicts.worth_it(c, a, q.plans),
    Topic.EVIDENCE: _short(ranking_answers.evidence),
    Topic.MEASURED: _short(measurements.gain),
    Topic.PREDICTION_CHECK: _short(measurements.prediction_check),
    Topic.SOURCES: _short(run_answers.sources),
    Topic.COMPARE: _compare,
    Topic.RANK_BY: lambda c, a, q: verdicts.rank_by(c, a, q.text),
    Topic.WHY_NOT: _plans,
    Topic.WHAT_IF: _what_if,
    Topic.EXPLAIN: _explain,
    Topic.FIRST: _short(_first),
    Topic.SUMMARY: _short(verdicts.summary),
    Topic.BOTTLENECK: _short(run_answers.bottleneck),
    Topic.OPERATIONS: profile_answers.operations,
    Topic.ROOFLINE: profile_answers.roofline,
    Topic.COLLECTIVES: profile_answers.collectives,
    Topic.MEMORY: figures.memory,
    Topic.THROUGHPUT: figures.throughput,
    Topic.PROPOSALS: _short(ranking_answers.proposals),
    Topic.RUN: _short(run_answers.run),
    Topic.PRECEDENT: _precedents,
    Topic.PRINCIPLE: lambda c, a, q: run_answers.principle(c, a, q.text),
    Topic.TOLD: _told,
}
