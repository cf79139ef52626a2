"""What comes every so many steps, "a checkpoint every 100 steps takes 90 s": its share of the time."""

import re

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.units import format_percent, format_seconds
from asap.evidence.anchor import modelled_now
from asap.evidence.step_time import current_step_time

_WORK = re.compile(r"\b(?:checkpoint\w*|evals?|evaluat\w+|validation|sav(?:e|es|ing)|snapshots?|logging)\b", re.I)
_EVERY = re.compile(r"\b(?:every|each|per)\s+\W?(\d{1,7})(?:\s*(k))?\s*(?:th\s+)?(?:steps?|iter\w*)\b", re.I)


def tells_of_periodic(question: Question) -> bool:
    """Whether it says how long something takes that comes every so many steps."""
    text = question.text
    return _WORK.search(text) is not None and _EVERY.search(text) is not None and _seconds(question) is not None


def periodic(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Its share beside the steps, which no plan changes."""
    found, took = _EVERY.search(question.text), _seconds(question)
    if found is None or took is None:
        return
    answer.complete, count = True, max(int(found[1]), 1) * (1000 if found[2] else 1)
    now = modelled_now(conversation.study)
    step = current_step_time(conversation.study, conversation.evidence) or (now.step_time if now else None)
    answer.add("No step time here counts it, and no plan changes it; nothing is recorded.")
    if step is not None:
        share = took / (took + count * step.value)
        answer.add(
            f"{format_seconds(took)} every {count} steps of {format_seconds(step.value)} is {format_percent(share)} of"
            " the time, if nothing runs beside it."
        )


def _seconds(question: Question) -> float | None:
    return next((amount.value for amount in question.amounts if amount.unit == "s"), None)
