"""How long until a test of a plan tells: its steps, minutes and chip-hours."""

import math
from dataclasses import replace

from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.whole_plan import plan_to_test
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.core.provenance import Quantity
from asap.core.units import format_percent, format_seconds, significant
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.evidence.step_belief import Z_90
from asap.evidence.step_time import current_step_time
from asap.prediction.prediction import Prediction
from asap.proposals.test_worth import STEPS, WARM_UP_STEPS, worth_of_test

_HOUR = 3600.0


def test_cost(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of the plan that is named, else of the one that was spoken of or is proposed first.

    Raises:
        InsufficientEvidenceError: nothing is proposed, or nothing says how long a step takes.
    """
    study = conversation.study
    plan = plan_to_test(conversation, question)
    if plan is None:
        raise InsufficientEvidenceError("nothing is proposed for a test", where=conversation.id)
    if len(others := [one for one in question.plans if one != study.plan]) > 1:
        for each in others:
            test_cost(conversation, answer, replace(question, plans=(each,)))
        return
    found, now = prediction_of(conversation, plan), current_step_time(study, conversation.evidence)
    answer.focus, step = plan, _step(found, now)
    if step is None:
        reason = "how long a step takes is not known"
        raise InsufficientEvidenceError(reason, where=conversation.id, hint='say it: "the baseline takes 2.4 s"')
    seconds, chips = (WARM_UP_STEPS + STEPS) * step, study.slice.chips if study.slice else plan.devices
    answer.add(
        f"A test of {plan} takes {WARM_UP_STEPS} steps of warm-up and {STEPS} that count: {_time(seconds)} at"
        f" {format_seconds(step)} a step (modelled), {significant(seconds * chips / _HOUR)} chip-hours on {chips}"
        " chips; starting and compiling come on top.",
        _tells(found.relative_step_time),
    )
    if question.dollars is not None:
        answer.add(f"At ${question.dollars:g} a chip hour that is ${seconds * chips / _HOUR * question.dollars:,.2f}.")
    worth = worth_of_test(study, now, found.relative_step_time, found.step_time)
    answer.add(*([worth.statement] if worth else []))
    answer.add_figure(f"{plan}: step time", found.step_time)


def _step(found: Prediction, now: Quantity | None) -> float | None:
    if found.step_time is not None:
        return found.step_time.value
    relative = found.relative_step_time
    return now.value * relative.value if now is not None and relative is not None else None


def _tells(relative: Quantity | None) -> str:
    """The difference that a test can tell, and the steps that one as small as expected needs.

    The difference of two means of n steps has the standard error ``variation · sqrt(2 / n)``.
    """
    least = Z_90 * STEP_TIME_VARIATION * math.sqrt(2 / STEPS)
    said = (
        f"As steps vary by up to {format_percent(STEP_TIME_VARIATION, 0)}, {STEPS} of each plan tell a difference from"
        f" {format_percent(least)} upwards"
    )
    gain = abs(1 - relative.value) if relative is not None else None
    if gain is None or gain >= least:
        return f"{said}{f'; {format_percent(gain)} is expected' if gain else ''}."
    steps = math.ceil(2 * (Z_90 * STEP_TIME_VARIATION / max(gain, 1e-3)) ** 2)
    return f"{said}; the {format_percent(gain)} that is expected takes {steps:,} of each."


def _time(seconds: float) -> str:
    return f"{significant(seconds / 60)} minutes" if seconds >= 60 else format_seconds(seconds)
