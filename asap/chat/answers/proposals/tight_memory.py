"""Too little HBM is left in a proposal: "91 of 95 is too tight": what is left of it, and who takes less."""

import re

from asap.chat.answers.phrasing import line
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.memory.quoted_memory import OF_ALL
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import GIB, format_bytes
from asap.prediction.prediction import Prediction
from asap.proposals.selection.candidate import Candidate

_TIGHT = re.compile(
    r"\b(?:(?:too|very|pretty|really|awfully|uncomfortably|a bit|quite|so) (?:close|full|snug|risky)|tight)\b"
    r"|\bcutting it (?:too )?(?:close|fine)\b"
    r"|\b(?:no|little|not (?:much|enough)) (?:headroom|margin|slack)\b",
    re.I,
)
_OF_MEMORY = re.compile(r"\b(?:hbm|memory|vram|gi?b|headroom)\b", re.I)
_NEAR = 1.0
"""GiB by which a figure that is quoted may be rounded."""


def finds_tight(question: Question) -> bool:
    """Whether it says that a plan leaves too little HBM."""
    tight = _TIGHT.search(question.text) is not None
    return tight and (_OF_MEMORY.search(question.text) is not None or OF_ALL.search(question.text) is not None)


def tight_memory(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The plan, those proposals that take less, and how to state a limit.

    Raises:
        InsufficientEvidenceError: HBM is not predicted.
    """
    current = conversation.proposals
    meant = _meant(conversation, question)
    held = _held(meant) if meant is not None else None
    if meant is None or held is None:
        raise InsufficientEvidenceError("HBM is not predicted without the architecture", where=conversation.id)
    answer.focus, answer.complete = meant.plan, True
    answer.add(*_unmatched(conversation, question))
    answer.add(line(conversation, meant))
    less = [(rank, one) for rank, one in enumerate(current, 1) if (_held(one) or held) < held - GIB]
    answer.add("These proposals take less:" if less else "No proposal takes less.")
    answer.add(*(line(conversation, one, rank) for rank, one in less))
    answer.add(
        f'Nothing is recorded. Say how much a plan may take, as in "HBM at most {held / GIB * 0.9:.0f} GiB" (now'
        f" {format_bytes(held)}): then plans above it are ruled out."
    )


def _meant(conversation: Conversation, question: Question) -> Candidate | None:
    """The plan that is named, or whose HBM is quoted, else the one spoken of, else the first."""
    current = conversation.proposals
    quoted = [float(found[1]) for found in OF_ALL.finditer(question.text)]
    for candidate in current:
        held = _held(candidate)
        if candidate.plan in question.refs.ranked:
            return candidate
        if held is not None and any(abs(held / GIB - value) < _NEAR for value in quoted):
            return candidate
    spoken_of = conversation.candidate(conversation.focus) if conversation.focus is not None else None
    return spoken_of[1] if spoken_of else next(iter(current), None)


def _unmatched(conversation: Conversation, question: Question) -> list[str]:
    """Says that a figure is of nothing that is predicted."""
    quoted = [float(found[1]) for found in OF_ALL.finditer(question.text)]
    held = [prediction.memory.total.value / GIB for prediction in _predictions(conversation) if prediction.memory]
    if not quoted or any(abs(one - value) < _NEAR for one in held for value in quoted):
        return []
    return [
        f"{quoted[0]:g} GiB is predicted of no proposal, nor of what runs now. If it was measured, say"
        f' "we measured {quoted[0]:g} GiB of HBM", with its plan.'
    ]


def _predictions(conversation: Conversation) -> list[Prediction]:
    now = conversation.study.plan
    plans = [*([now] if now is not None else []), *conversation.order]
    return [prediction_of(conversation, plan) for plan in plans]


def _held(candidate: Candidate) -> float | None:
    memory = candidate.prediction.memory
    return memory.total.value if memory is not None else None
