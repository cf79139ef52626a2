"""What fills the HBM of a plan whose figure or verdict is quoted: "who eats the 36", "how sure is 'may not fit'"."""

import re
from dataclasses import replace

from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.memory.memory import memory
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.units import GIB
from asap.plans import Plan

_FILLS = re.compile(
    r"\b(?:who|what|where)\b[^?]*\b(?:eat\w*|hog\w*|fill\w*|consum\w*|us(?:es|ing)"
    r"|tak(?:es|ing)(?: up)?|go(?:es)?|mak(?:es|ing) up|in|behind|made of|come\w* from)\b",
    re.I,
)
_VERDICT = re.compile(r"\b(?P<may>may|might|could) not fit\b|\b(?:does|do|will|would) ?(?:not|n't) fit\b", re.I)
OF_ALL = re.compile(
    r"(?<![\w.=])(\d{1,3}(?:\.\d+)?)\s*(?:gi?b?)?\s*(?:of|/|out of)\s*(?:the\s+)?(\d{2,3}(?:\.\d+)?)(?![\w.%])", re.I
)
"""So much of all that there is: "91 of 95"."""
_NEAR = 0.03


def asks_what_fills(conversation: Conversation, question: Question) -> bool:
    """Whether it asks what takes the HBM whose figure it repeats, without saying that it is HBM."""
    return _FILLS.search(question.text) is not None and question.change.empty and bool(_quoted(conversation, question))


def what_fills(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The plan's HBM by part."""
    memory(conversation, answer, replace(question, plans=_quoted(conversation, question)[:1]))


def with_verdict(conversation: Conversation, text: str) -> list[Plan]:
    """The plans, what runs first, whose verdict is quoted."""
    found = _VERDICT.search(text)
    if found is None:
        return []
    verdict = "may not fit" if found["may"] else "does not fit"
    held = [(plan, prediction_of(conversation, plan).memory) for plan in _plans(conversation)]
    return [plan for plan, one in held if one is not None and one.verdict == verdict]


def _quoted(conversation: Conversation, question: Question) -> tuple[Plan, ...]:
    said = [amount.value for amount in question.amounts if amount.unit in {"", "GiB", "GB"} and amount.value > 1]
    if (of := OF_ALL.search(question.text)) is not None:
        said = [float(of[1])]
    if len(said) != 1:
        return ()
    held = [(plan, prediction_of(conversation, plan).memory) for plan in _plans(conversation)]
    return tuple(plan for plan, one in held if one is not None and _repeats(said[0], one.total.value / GIB))


def _repeats(said: float, known: float) -> bool:
    return said == int(known) or abs(said / known - 1) <= _NEAR


def _plans(conversation: Conversation) -> list[Plan]:
    now = conversation.study.plan
    return [*([now] if now is not None else []), *conversation.order]
