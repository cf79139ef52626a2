"""What a monitor shows of a device and no figure here is: its utilisation, occupancy or power."""

import re

from asap.chat.answers.this_run.run import bottleneck
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question

_SHOWN: tuple[tuple[str, str], ...] = (
    (
        r"(?:gpu|tpu|device|chip|card|volatile|dcgm|nvidia-smi|duty)[ -](?:\w+[ -])?(?:util\w*|usage|load|busy|active"
        r"|cycle)"
        r"|util\w*(?= (?:in|on|by|from|of) (?:nvidia-smi|dcgm|grafana|the (?:gpus?|dashboard)))",
        "The utilisation of a device is the share of the time in which anything runs on it: it says when it waits, and"
        " not how well it computes, as MFU does.",
    ),
    (
        r"(?:sm|tensor[- ]?cores?|mxu)[ -](?:util\w*|occupancy|activ\w+|busy)|occupancy",
        "Occupancy says how full the cores are while a kernel runs, and not how long they wait between kernels.",
    ),
    (
        r"power (?:draw|usage|consumption)|(?:gpu|chip|card)s? (?:draw|pull)\w*|watts?|\d+ ?w\b",
        "Power follows what the arithmetic units do: a device that waits draws less. No prediction takes it.",
    ),
)


def monitored(question: Question) -> str | None:
    """What the figure of a monitor means that a message names beside a number; ``None`` if it names none."""
    if not question.amounts:
        return None
    return next((means for words, means in _SHOWN if re.search(rf"\b(?:{words})", question.text, re.I)), None)


def monitor(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What it means, that it is not recorded, and what the step waits for."""
    if (means := monitored(question)) is not None:
        answer.complete = True
        answer.add(f"{means} It is not recorded, as no figure here can be set beside it. What the step waits for:")
        bottleneck(conversation, answer, question)
