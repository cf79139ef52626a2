"""Bytes that collectives move, which no prediction keeps: "whats the all-reduce volume per layer"."""

import re

from asap.chat.answers.single_plans.figures import subjects
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.units import format_percent, format_seconds
from asap.plans.axes import MEANINGS

_VOLUME = re.compile(
    r"\b(?:volumes?|payloads?|message sizes?|how (?:many|much) (?:bytes|data|g(?:i)?bs?|m(?:i)?bs?)"
    r"|(?:bytes|g(?:i)?b|m(?:i)?b) (?:per|a|each|of|on|over|move\w*|sent|exchanged))\b",
    re.I,
)
_COLLECTIVES = re.compile(
    r"\b(?:all[- ]?(?:reduc|gather|to[- ]?all)\w*|reduce[- ]?scatter\w*|collectives?|communicat\w*|p2p|network|ici"
    r"|nvlink|traffic|wire|exchanged?)\b",
    re.I,
)
_STATED = re.compile(r"\bgi?b(?:it)?s?/s\b|\bbandwidth\b", re.I)


def asks_volume(question: Question) -> bool:
    """Whether it asks how many bytes collectives move."""
    text = question.text
    asked = _VOLUME.search(text) is not None and _COLLECTIVES.search(text) is not None
    return asked and not _STATED.search(text) and question.change.empty


def volume(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """That there are times and no bytes, and the time of each collective in a step."""
    answer.complete = True
    answer.add("A prediction has the time of each collective, and not its bytes; a profile's operations have both.")
    for name, found in subjects(conversation, question):
        step = sum(part.exposed_s for part in found.parts)
        sent = [part for part in found.parts if part.axis is not None and part.exposed_s > 0]
        if not step or not sent:
            answer.add(f"{name}: no exposed collective is predicted.")
        for part in sent:
            of = next((meaning for axis, meaning in MEANINGS.items() if axis == part.axis), part.axis)
            layers = conversation.study.experiment.model.layers if conversation.study.experiment.model else None
            each = f", {format_seconds(part.exposed_s / layers)} a layer" if layers else ""
            answer.add(
                f"{name}: {part.name} of {of} adds {format_seconds(part.exposed_s)} to a step"
                f" ({format_percent(part.exposed_s / step)}{each}; modelled)"
            )
