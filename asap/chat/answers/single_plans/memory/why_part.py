"""Why a part of the HBM is as large as it is: "why 17.7 temporaries", "activations so big how"."""

import re

from asap.chat.answers.single_plans.memory.memory_basis import memory_basis
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import asks_why

_PART = re.compile(r"\b(?:temporar\w+|activations?|gradients?|optimi[sz]er states?|param(?:eter)?s)\b", re.I)
_LARGE = re.compile(r"\b(?:big|large|huge|high|much|many|low|small|little|tiny)\b|\d", re.I)
_HOW = re.compile(r"\bhow\W*$", re.I)
_LONGEST = 8


def asks_why_part(question: Question) -> bool:
    """Whether it asks for the reason of the size of a part, and changes nothing."""
    text = question.text
    short = len(text.split()) <= _LONGEST and question.change.empty and not question.refs.written
    asked = asks_why(text) or _HOW.search(text) is not None
    return short and asked and _PART.search(text) is not None and _LARGE.search(text) is not None


_USES = re.compile(r"\b(?:(?:use|need|take|hold|eat|want)s?|using|taking)\s+how much\W*$", re.I)


def asks_how_much(question: Question) -> bool:
    """Whether it asks how much a proposal uses, and says of nothing else that it means: "2 needs how much"."""
    return _USES.search(question.text) is not None and bool(question.refs.ranked) and question.change.empty


def why_part(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What each part follows from; raises InsufficientEvidenceError where HBM is not predicted."""
    answer.complete = True
    memory_basis(conversation, answer, question)
