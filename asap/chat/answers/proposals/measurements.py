"""Answers on what was measured: the real gain, and how far off the prediction was."""

import re

from asap.chat.answers.phrasing import backtest_score, line
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_bytes, format_seconds, significant
from asap.evidence.anchor import implied_step
from asap.evidence.claims import Claim
from asap.evidence.fact import StatedFact
from asap.evidence.step_time import current_step_time
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.reports import phrases

_WHY = re.compile(r"\bwhy\b", re.I)
NOT_MODELLED = (
    "Not modelled are the input pipeline, checkpoints and evaluation, slow devices, and other jobs on the machine."
)


def gain(conversation: Conversation, answer: ReplyBuilder) -> None:
    """What the measured plans gained over what runs now, as far as both were measured."""
    found = [fact for fact in conversation.evidence if fact.claim in {Claim.STEP_TIME, Claim.RELATIVE}]
    now = current_step_time(conversation.study, conversation.evidence)
    plans = [fact for fact in found if fact.plan != conversation.study.plan]
    for fact in plans:
        ratio = _ratio(conversation, fact)
        if ratio is None:
            answer.add(f"{fact}: what runs now has no measured step to compare it with. State it in seconds.")
            continue
        both = (
            f" ({format_seconds(fact.value or 0)} instead of {format_seconds(now.value)})"
            if now and fact.claim is Claim.STEP_TIME
            else ""
        )
        answer.add(
            f"{fact.plan}: {(ratio - 1) * 100:+.1f} % step time, {significant(1 / ratio)} times as fast "
            f"as what runs now,"
            f" measured{both}"
        )
        answer.focus = fact.plan
    if not plans:
        answer.add("Only predictions so far: no proposal has a measured step time.")
        answer.add(*(line(conversation, candidate, 1) for candidate in conversation.proposals[:1]))
        answer.add('Run one and tell me: "proposal 1 measured 2.1 s".')


def prediction_check(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Each measurement beside what was predicted before it; without one, how the model did on published runs."""
    for stated in conversation.evidence:
        step = implied_step(conversation.study, stated)
        fact = stated.model_copy(update={"claim": Claim.STEP_TIME, "value": step.value}) if step else stated
        if fact.claim in {Claim.STEP_TIME, Claim.RELATIVE} and fact.plan is not None:
            answer.add(*(against_prediction(conversation, fact) or [f"{fact}, as predicted."]))
            answer.focus = fact.plan
        answer.add(*memory_against_prediction(conversation, stated))
    if not answer.lines:
        answer.add("Nothing was measured yet that a prediction of this run could be compared with.")
        answer.add(f"On other runs, of the step time: {backtest_score()}.")
        answer.add('State a measurement: "proposal 1 measured 2.1 s", "the baseline takes 2.4 s".')
    elif _WHY.search(question.text):
        answer.add(f"A profile of that run would tell why. {NOT_MODELLED}")


def against_prediction(conversation: Conversation, fact: StatedFact) -> list[str]:
    """A measurement beside the prediction of the analysis; flagged where it lies outside of the interval."""
    assert fact.plan is not None
    predicted = predicted_before(conversation, fact.plan)
    if predicted is None:
        return [f"{fact}; nothing was predicted for it."]
    if fact.plan == conversation.study.plan or predicted.relative_step_time is None:
        return _absolute(fact, predicted)
    ratio = _ratio(conversation, fact)
    if ratio is None:
        return _absolute(fact, predicted)
    relative = predicted.relative_step_time
    off = ratio / relative.value - 1
    text = (
        f"{fact.plan}: predicted {phrases.percent_change(relative)} step time, measured {(ratio - 1) * 100:+.1f} %:"
        f" the step takes {abs(off) * 100:.1f} % {'longer' if off > 0 else 'less'} than predicted"
    )
    return [text, *_outside(ratio, relative.low, relative.high)]


def memory_against_prediction(conversation: Conversation, fact: StatedFact) -> list[str]:
    """HBM in use beside the prediction of the plan; nothing where it is not predicted, or no such fact."""
    predicted = predicted_before(conversation, fact.plan) if fact.plan is not None and fact.value else None
    memory = predicted.memory if predicted is not None else None
    if memory is None or fact.claim not in {Claim.HBM_BYTES, Claim.HBM_SHARE}:
        return []
    held = (fact.value or 0.0) * (memory.capacity_bytes if fact.claim is Claim.HBM_SHARE else 1.0)
    off = held / memory.total.value - 1
    return [
        f"{fact.plan}: predicted {format_bytes(memory.total.value)} of HBM, measured {format_bytes(held)}:"
        f" {abs(off) * 100:.0f} % {'more' if off > 0 else 'less'} than predicted. What a monitor or an allocator has"
        " reserved is more than the peak in use."
    ]


def predicted_before(conversation: Conversation, plan: Plan) -> Prediction | None:
    """What was expected of a plan before any measurement: by the analysis, or of the batch that was stated since."""
    from asap.prediction.predict_study import expect

    study = conversation.study_as_stated
    if study is conversation.analysed_study and plan in conversation.analysed:
        return conversation.analysed[plan].prediction
    try:
        return expect(study, [plan])[0]
    except InsufficientEvidenceError:
        return None


def _absolute(fact: StatedFact, predicted: Prediction) -> list[str]:
    step = predicted.step_time
    if step is None or fact.claim is not Claim.STEP_TIME or fact.value is None:
        return []
    off = fact.value / step.value - 1
    if abs(off) < 1e-6:
        return []
    text = (
        f"{fact.plan}: predicted {phrases.interval(step)}, measured {format_seconds(fact.value)}:"
        f" {abs(off) * 100:.1f} % {'longer' if off > 0 else 'less'} than predicted"
    )
    return [text, *_outside(fact.value, step.low, step.high)]


def _outside(value: float, low: float | None, high: float | None) -> list[str]:
    if low is None or high is None or low <= value <= high:
        return []
    side = "above" if value > high else "below"
    return [f"! That is {side} the interval that holds 9 of 10 runs. Is it the same run, and a steady step?"]


def _ratio(conversation: Conversation, fact: StatedFact) -> float | None:
    if fact.claim is Claim.RELATIVE:
        return fact.value
    now = current_step_time(conversation.study, conversation.evidence)
    return fact.value / now.value if now is not None and fact.value else None
