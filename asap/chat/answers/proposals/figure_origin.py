"""Where one figure comes from: "where does 2.7 s come from?", "120 ms? based on what?"."""

import re

from asap.chat.answers.phrasing import figures_of
from asap.chat.answers.proposals.order.ranking import basis_of
from asap.chat.answers.proposals.quotes import basis
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.provenance import Quantity
from asap.core.units import format_seconds
from asap.evidence.step_time import current_step_time
from asap.plans import Plan

_ORIGIN = re.compile(
    r"\b(?:where|how)\b(?:[^.?!]|\.\d)*\b(?:comes?|came|coming"
    r"|(?:did|do) (?:you|it) (?:get|come up|arrive|take|know))\b"
    r"|\b(?:based|basis|resting|rests) on what\b|\bon what (?:basis|grounds)\b|\bsays who\b"
    r"|\baccording to (?:what|whom|who)\b"
    r"|\b(?:is|was) (?:that|this|it) (?:measured|modelled|modeled|a guess|guessed|made up)\b",
    re.I,
)
_NEAR = 0.02
"""Share by which a figure that is quoted may be rounded."""


def asks_origin(conversation: Conversation, question: Question) -> bool:
    """Whether it asks where a step time that it names comes from."""
    return _ORIGIN.search(question.text) is not None and _whose(conversation, question) is not None


def figure_origin(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Whose figure it is, whether it was measured, and what it rests on."""
    found = _whose(conversation, question)
    if found is None:
        return
    plan, step = found
    study = conversation.study
    if plan != study.plan:
        answer.add(f"{format_seconds(step.value)} is the step time of {plan}, predicted; it has not run here.")
        basis_of(conversation, answer, [plan])
        return
    answer.focus = plan
    measured = current_step_time(study, conversation.evidence) is not None
    origin = "measured or stated" if measured else "modelled; no measured step time is on record"
    answer.add(f"{format_seconds(step.value)} is the step time of what runs now, {plan}: {origin}.")
    if measured:
        basis(conversation, answer, question)
        return
    answer.add(f"- {figures_of(prediction_of(conversation, plan))}")
    answer.add(
        "- It is computed from the architecture, the batch, the plan and the chips on record, with constants fitted to"
        ' published runs. One measured step replaces it: say "the step takes 2.4 s".'
    )


def _whose(conversation: Conversation, question: Question) -> tuple[Plan, Quantity] | None:
    """The plan whose step time is quoted: what runs now, then the proposals in their order."""
    said = [amount.value for amount in question.amounts if amount.unit == "s"]
    now = conversation.study.plan
    for plan in (*((now,) if now is not None else ()), *conversation.order):
        step = _step(conversation, plan)
        if step is not None and any(abs(value - step.value) <= _NEAR * step.value for value in said):
            return plan, step
    return None


def _step(conversation: Conversation, plan: Plan) -> Quantity | None:
    study = conversation.study
    if plan == study.plan and (now := current_step_time(study, conversation.evidence)) is not None:
        return now
    found = prediction_of(conversation, plan)
    if found.step_time is not None or found.relative_step_time is None:
        return found.step_time
    measured = current_step_time(study, conversation.evidence)
    return measured.model_copy(update={"value": measured.value * found.relative_step_time.value}) if measured else None
