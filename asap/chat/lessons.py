"""What a measurement changes in the predictions of other plans, with the old and the new figure."""

import math
from collections.abc import Mapping

from asap.chat.conversation import Conversation
from asap.core.errors import InsufficientEvidenceError
from asap.core.provenance import Provenance, Quantity
from asap.core.units import format_seconds, significant
from asap.evidence.anchor import modelled_now
from asap.evidence.step_time import current_step_time
from asap.plans import Plan
from asap.reports.phrases import percent_change

_LEAST_CHANGE = 0.01
"""Share of a step below which a change is not worth a line."""


def anchored_to_step(conversation: Conversation, old: Quantity | None) -> list[str]:
    """How a newly measured step of what runs now moves the predictions."""
    now = current_step_time(conversation.study, conversation.evidence)
    modelled = modelled_now(conversation.study_as_stated)
    if now is None or now == old or modelled is None or modelled.step_time is None:
        return []
    factor = now.value / modelled.step_time.value
    if abs(factor - 1) < _LEAST_CHANGE:
        return []
    return [
        f"Every prediction is anchored to it: {format_seconds(modelled.step_time.value)} was predicted for what runs"
        f" now, so all step times are taken {significant(factor)} times as long."
    ]


def anchored_to_another(conversation: Conversation) -> list[str]:
    """How the measured step of another plan moves the prediction of what runs now, and with it all others."""
    from asap.prediction.predict_study import expect

    study, before = conversation.study, modelled_now(conversation.study_as_stated)
    if study.plan is None or study.profile is None or before is None or before.step_time is None:
        return []
    (now,) = expect(study, [study.plan])
    if now.step_time is None or abs(now.step_time.value / before.step_time.value - 1) < _LEAST_CHANGE:
        return []
    return [
        f"Every prediction is anchored to it: what runs now is expected at {format_seconds(now.step_time.value)} a step"
        f" instead of {format_seconds(before.step_time.value)}."
    ]


def expectations(conversation: Conversation) -> dict[Plan, Quantity]:
    """Step time over that of what runs now, of every plan that is ranked."""
    try:
        candidates = conversation.revised.ranked.candidates
    except InsufficientEvidenceError:
        return {}
    return {c.plan: r for c in candidates if (r := c.prediction.relative_step_time) is not None}


def moved_with(conversation: Conversation, before: Mapping[Plan, Quantity]) -> list[str]:
    """The proposal that moved most with what another plan measured, before and now."""
    now = expectations(conversation)
    moved = {
        plan: abs(math.log(now[plan].value / before[plan].value))
        for plan in conversation.order
        if plan in now and plan in before and now[plan].provenance is before[plan].provenance is Provenance.MODELLED
    }
    plan = max(moved, key=lambda each: moved[each], default=None)
    if plan is None or moved[plan] < _LEAST_CHANGE:
        return []
    old, new = (percent_change(figures[plan]) for figures in (before, now))
    return [f"What was measured moves plans near it: {plan} was expected at {old} step time, and now at {new}."]
