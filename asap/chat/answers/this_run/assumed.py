"""What predictions take for granted: "did you scale the batch with the chips?", "are you assuming 8k?"."""

import re

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.things import Thing, things_named
from asap.chat.understanding.question import Question

_ASKED = re.compile(
    r"\b(?:did|have|had) (?:you|u)\b[^.?!]*\b(?:chang|increas|rais|scal|grow|grew|assum|keep|kept|hold|held|vary|varied"
    r"|adjust|fix|account|double)\w*\b|\bare (?:you|u) (?:assum|keep|hold|scal|chang|vary|account|count)\w*ing\b",
    re.I,
)
_KNOWN: dict[Thing, str] = {"batch": "global batch", "sequence": "sequence length"}


def asks_assumed(question: Question) -> bool:
    """Whether it asks what was done about the batch or the sequence."""
    return _ASKED.search(question.text) is not None and bool(set(things_named(question.text)) & _KNOWN.keys())


def assumed(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The figures that hold for every plan, unless a question says otherwise."""
    workload = conversation.study.experiment.workload
    known = {"batch": workload.global_batch, "sequence": workload.sequence_length}
    answer.complete = True
    answer.add(*(f"{name}: {known[thing] or 'not on record'}" for thing, name in _KNOWN.items()))
    answer.add(
        "Every plan is evaluated with that, as the run has it: neither follows the plan or the chips unless you ask so,"
        ' as in "what if 1024 chips and batch 512".'
    )
