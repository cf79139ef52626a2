"""Which proposals reach what somebody wants: so much more throughput, an MFU, a step of so many seconds."""

import math
import re

from asap.chat.answers.phrasing import expectation, fit
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.amounts import amounts
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_percent
from asap.evidence.plausibility import HIGHEST_PUBLISHED_MFU, SAYS_MFU
from asap.evidence.step_time import current_step_time
from asap.prediction.prediction import Prediction
from asap.proposals.selection.doubt import log_interval, probability_faster

_SHORTER = re.compile(r"\b(?:less|short\w*|cut\w*|reduc\w+|sav\w+|shav\w+|lower\w*|off)\b", re.I)


def target(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The proposals with the odds that each reaches it, the likeliest first.

    Raises:
        InsufficientEvidenceError: what runs now takes an unknown time, and the target is one of time or MFU.
    """
    ratio = _wanted(conversation, question)
    if ratio is None or not ratio > 0:
        answer.add('How much? Ask it like "which gives 20 % more throughput", "an MFU of 45 %", "below 8 s a step".')
        return
    rate = _now(conversation).tokens_per_second
    answer.goal = rate.value / ratio if rate is not None else None
    if ratio >= 1:
        answer.add("What runs now is expected to reach that already.")
        return
    now = _now(conversation).mfu
    if now is not None and now.value / ratio > HIGHEST_PUBLISHED_MFU:
        wanted, best = format_percent(now.value / ratio), format_percent(HIGHEST_PUBLISHED_MFU, 0)
        answer.add(f"That takes an MFU of {wanted}; no run of any model has published more than {best}.")
    change = f"a step that is {format_percent(1 - ratio)} shorter, {format_percent(1 / ratio - 1)} more throughput"
    current = conversation.proposals
    rows = [(_odds(one.prediction, ratio), rank, one.prediction) for rank, one in enumerate(current, 1)]
    known = sorted(((odds, rank, found) for odds, rank, found in rows if odds is not None), key=lambda row: -row[0])
    answer.add(f"That is {change}. The odds that a proposal reaches it:" if known else f"That is {change}.")
    for odds, rank, found in known:
        answer.add(f"- proposal {rank}, {found.plan}: {format_percent(odds, 0)}; {expectation(found)}{fit(found)}")
    if not known or known[0][0] < 0.5:
        answer.add(
            "None is likely to. Beyond these plans: a larger batch, lower precision, or another chip; ask"
            ' "what if the batch doubles?", "with fp8?", "on v6e?".'
        )
    if known:
        answer.focus = known[0][2].plan


def _wanted(conversation: Conversation, question: Question) -> float | None:
    """The step that is wanted over that of now; ``None`` where no number says it."""
    said, text = question.amounts, question.text
    if not said and question.context.topic is Topic.TARGET and conversation.line is not None:
        text = conversation.line
        said = tuple(amounts(text))
    for amount in said:
        share = amount.value / 100
        if amount.unit == "%" and SAYS_MFU.search(text):
            now = _now(conversation).mfu
            return now.value / share if now is not None and share else None
        if amount.unit == "%":
            return 1 - share if _SHORTER.search(text) else 1 / (1 + share)
        if amount.unit == "x" and amount.value:
            return 1 / amount.value if amount.value > 1 else amount.value
        if amount.unit == "s":
            return amount.value / _seconds(conversation)
        if amount.unit in {"tokens/s", "tokens/s/chip"} and amount.value:
            rate = _now(conversation).tokens_per_second
            chips = _now(conversation).plan.devices if amount.unit.endswith("chip") else 1
            return rate.value / chips / amount.value if rate is not None else None
    return None


def _now(conversation: Conversation) -> Prediction:
    plan = conversation.study.plan
    if plan is None:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id)
    return prediction_of(conversation, plan)


def _seconds(conversation: Conversation) -> float:
    step = current_step_time(conversation.study, conversation.evidence) or _now(conversation).step_time
    if step is None:
        reason = "how long a step takes now is not known"
        raise InsufficientEvidenceError(reason, where=conversation.id, hint='say it: "the baseline takes 2.4 s"')
    return step.value


def _odds(prediction: Prediction, ratio: float) -> float | None:
    """That a plan's step is at most so many times that of now."""
    relative = prediction.relative_step_time
    if relative is None or relative.unit != "fraction":
        return None
    gain, half_width = log_interval(relative)
    return probability_faster(gain + math.log(ratio), half_width)
