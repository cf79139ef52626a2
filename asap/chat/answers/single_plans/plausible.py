"""Whether a step time that somebody names is plausible: beside the prediction, and as an MFU."""

import re

from asap.chat.answers.single_plans.directions import wished_plans
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.changes import is_of_settings, plan_settings
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_percent, format_seconds
from asap.evidence.anchor import implied_step, modelled_now
from asap.evidence.claims import Claim
from asap.evidence.plausibility import HIGHEST_PUBLISHED_MFU, IMPLAUSIBLE_MFU, SAYS_MFU, mfu_of_rate, mfu_of_step
from asap.evidence.step_time import current_step_time
from asap.plans import Plan
from asap.reports.phrases import interval

_JUDGES = re.compile(
    r"\b(?:is|are|was|isn't|aren't)\s+(?:that|it|this|those|these|they)\s+(?:(?:any|even|really|considered|actually|so|too|a)\s+)*"
    r"(?:good|bad|ok(?:ay)?|fine|normal|high|low|great|decent|reasonable|typical|alright|poor|acceptable)\b",
    re.I,
)


_RATES = {"tokens/s", "tokens/s/chip", "FLOP/s"}
_RATED = re.compile(
    r"^\W*(?:(?:so|and|but|ok|hm+)\W+)*(?:is|are|isn't|aren't|was)\s+(?:(?:our|the|about|around|only|just)\s+|~)*\d[^?]*?"
    r"\b(?:good|bad|ok(?:ay)?|fine|normal|high|low|slow|fast|great|decent|reasonable|typical|alright|poor|acceptable"
    r"|expected|terrible|awful|any good)\b",
    re.I,
)
"""Asks whether a rate that it names is a good one: "is 531 tok/s/gpu bad for 70b"."""
_DOUBTED = re.compile(
    r"\b(?:plausible|believable|credible|realistic|sane|legit|possible|bs|bullshit|bogus|fake|for real|true"
    r"|mak(?:e|es) sense"
    r"|(?:does|do) (?:that|it) (?:match|add up))\W*\?\W*$",
    re.I,
)
"""The same at the end of what somebody else reports: "my buddy gets 9k tok/s/gpu with tp=1. plausible?"."""


def judges(question: Question) -> bool:
    """Whether it asks if figures of speed that were just given are good ones."""
    of_before = question.context.topic is Topic.THROUGHPUT and not question.amounts and question.change.empty
    return of_before and _JUDGES.search(question.text) is not None


def judges_rate(question: Question) -> bool:
    """Whether it asks if a rate that it names is a good one."""
    rated = _RATED.search(question.text) is not None and question.change.empty and not question.refs.written
    doubted = _DOUBTED.search(question.text) is not None and (question.change.empty or is_of_settings(question.change))
    return (rated or doubted) and any(amount.unit in _RATES for amount in question.amounts)


def plausible(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """A step time of a plan, or of what runs now; nothing is recorded."""
    study = conversation.study
    seconds = next((amount.value for amount in question.amounts if amount.unit == "s" and amount.value > 0), None)
    meant = _plan_meant(conversation, question)
    named = meant or study.plan
    said = [a.value / 100 if a.unit == "%" else a.value for a in question.amounts if a.unit in {"%", ""}]
    share = next((value for value in said if 0 < value < 1), None) if SAYS_MFU.search(question.text) else None
    rate = next((amount for amount in question.amounts if amount.unit == "FLOP/s"), None)
    share = mfu_of_rate(study, rate.value) if rate is not None else share
    if seconds is None and share is None:
        seconds = _of_rate(conversation, question)
        share = _stated_mfu(conversation) if seconds is None and not question.amounts else None
    if seconds is None and share:
        answer.add(_of_mfu(share))
        measured = current_step_time(study, conversation.evidence)
        if measured is not None and (reached := mfu_of_step(study, measured.value)) is not None:
            answer.add(
                f"What runs now reaches {format_percent(reached)} by its step of {format_seconds(measured.value)}."
            )
        now = modelled_now(study)
        if now is not None and now.mfu is not None:
            expected_mfu = f"{format_percent(now.mfu.value)} ({now.mfu.provenance.value})"
            answer.add(f"The model alone expects {expected_mfu} of what runs now.")
        return
    if seconds is None and (judged := _judged(conversation, question)):
        answer.add(*judged)
        return
    plan = meant or conversation.focus or study.plan
    if seconds is None and plan is not None and SAYS_MFU.search(question.text):
        answer.add(*_beside_best(conversation, whole(conversation, plan)))
        return
    if seconds is None:
        answer.add('Which step time? Ask it like "is 3 s a step plausible for proposal 1?".')
        return
    if named is None:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id, hint="--plan PLAN")
    plan = whole(conversation, named)
    expected = modelled_now(study) if plan == study.plan else None
    answer.focus, step = plan, (expected or prediction_of(conversation, plan)).step_time
    if step is not None and step.low is not None and step.high is not None:
        side = "below" if seconds < step.low else "above" if seconds > step.high else "within"
        answer.add(f"{format_seconds(seconds)} is {side} what is expected of {plan}: {interval(step)}.")
        answer.add_figure(f"{plan}: step time", step)
    answer.complete = True
    mfu = mfu_of_step(study, seconds)
    if mfu is not None:
        answer.add(f"With this model and batch it would be an MFU of {format_percent(mfu, 0)}: {_verdict(mfu)}.")
    if _RATED.search(question.text):
        answer.add(*_beside_best(conversation, plan))
    if not answer.lines:
        answer.add("I cannot tell: that follows from the architecture, batch and sequence, not all on record.")


def _plan_meant(conversation: Conversation, question: Question) -> Plan | None:
    """The plan that is named, with the settings that are: "tp=1 with remat=none"."""
    of_settings = is_of_settings(question.change)
    plans = list(question.plans)
    if not plans and question.refs.wish is not None:
        plans = wished_plans(conversation, question.refs.wish)[:1]
    if not plans and of_settings and conversation.study.plan is not None:
        plans = [conversation.study.plan]
    if not plans:
        return None
    plan = whole(conversation, plans[0])
    batch = conversation.study.experiment.workload.global_batch
    return plan_settings(question.change, plan, batch) if of_settings else plan


def _judged(conversation: Conversation, question: Question) -> list[str]:
    """Whether the figures that were just given are good: "whats my mfu" · "is that good?"; empty if none were."""
    plan = conversation.focus
    return [] if question.context.topic is not Topic.THROUGHPUT or plan is None else _beside_best(conversation, plan)


def _beside_best(conversation: Conversation, plan: Plan) -> list[str]:
    """The MFU of a plan beside the best that was published and that is proposed."""
    mfu = prediction_of(conversation, plan).mfu
    if mfu is None:
        return ["Whether that is good says the MFU, which is unknown without the architecture, batch and sequence."]
    reached = [(one.prediction.mfu.value, one.plan) for one in conversation.proposals if one.prediction.mfu is not None]
    best, other = max(reached, key=lambda pair: pair[0], default=(0.0, plan))
    more = best > mfu.value and other != plan
    there = f"{other} is expected at {format_percent(best)}" if more else "no proposal is expected to reach more"
    return [
        f"An MFU of {format_percent(mfu.value)} ({mfu.provenance.value}), where the best published run of any model"
        f" reached {format_percent(HIGHEST_PUBLISHED_MFU, 0)}. Here {there}."
    ]


def _of_rate(conversation: Conversation, question: Question) -> float | None:
    """Seconds of a step at the tokens a second that are named, else as what runs now was stated to take."""
    study = conversation.study
    named = next((a for a in question.amounts if a.unit in {"tokens/s", "tokens/s/chip"} and a.value > 0), None)
    tokens = study.experiment.workload.tokens
    if named is not None and tokens and study.slice is not None:
        return tokens / named.value / (study.slice.devices if named.unit == "tokens/s/chip" else 1)
    for fact in reversed(conversation.evidence):
        if fact.plan == study.plan and fact.value and fact.claim is Claim.STEP_TIME:
            return fact.value
        if fact.plan == study.plan and fact.value and fact.claim is Claim.THROUGHPUT and tokens:
            return tokens / fact.value
        if fact.plan == study.plan and (implied := implied_step(study, fact)) is not None:
            return implied.value
    return None


def _stated_mfu(conversation: Conversation) -> float | None:
    """The MFU that was stated last of what runs now, where no step time was."""
    now = [fact for fact in conversation.evidence if fact.plan == conversation.study.plan and fact.value]
    return now[-1].value if now and now[-1].claim is Claim.MFU else None


def _of_mfu(mfu: float) -> str:
    return f"An MFU of {format_percent(mfu, 0)} is {_verdict(mfu)}."


def _verdict(mfu: float) -> str:
    best = f"(the best published run reached {format_percent(HIGHEST_PUBLISHED_MFU, 0)})"
    if mfu > IMPLAUSIBLE_MFU:
        return f"more than any run has published {best}"
    return f"about the highest ever published {best}" if mfu > HIGHEST_PUBLISHED_MFU else f"possible {best}"
