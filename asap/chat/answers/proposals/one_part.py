"""Plans set beside each other by one part only: "diff 1 vs 2 in comms only", "1 and 3 just on memory"."""

import re
from collections.abc import Callable

from asap.chat.answers.proposals.order.criteria import names_criterion, rank_by
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.units import format_percent, format_seconds
from asap.plans.axes import MEANINGS
from asap.prediction.prediction import Prediction, TimePart

_ONLY = re.compile(
    r"\b(?:only|just|alone|purely|solely|strictly|nothing (?:else|but)|in terms of|when it comes to|wrt"
    r"|(?:with|in) (?:respect|regard)s? to|regarding|as far as)\b",
    re.I,
)
_AT_THE_END = re.compile(r"\b(?:on|in|by|for)\s+(?:the\s+)?(?P<what>[a-z][\w -]{2,24}?)\W*$", re.I)
"""What two plans are weighed on: "1 vs 2 on memory"."""
_PARTS: tuple[tuple[re.Pattern[str], str, Callable[[TimePart], bool]], ...] = tuple(
    (re.compile(rf"\b(?:{words})\b", re.I), title, has)
    for words, title, has in (
        (r"communicat\w*|collectives?|network|traffic between", "exposed communication",
         lambda part: part.axis is not None or part.name.startswith("collectives")),
        (r"compute|flops?|matmuls?", "compute", lambda part: part.name.startswith("compute")),
        (r"hbm traffic|(?:hbm|memory) bandwidth", "HBM traffic", lambda part: part.name == "hbm"),
        (r"bubbles?|idle", "pipeline bubble", lambda part: "bubble" in part.name),
        (r"host|launch(?:es)?|dispatch", "host", lambda part: part.name == "host"),
    )
)  # fmt: skip
_TWO = 2


def asks_one_part(question: Question) -> bool:
    """Whether it compares plans by one part of the step or one figure, and by nothing else."""
    if len(question.plans) < _TWO or not question.change.empty:
        return False
    at_the_end = _AT_THE_END.search(question.text)
    named = question.text if _ONLY.search(question.text) else at_the_end["what"] if at_the_end else ""
    return _part(named) is not None or names_criterion(named)


def one_part(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """That part of each plan that is named, and by how much the first two differ; a figure orders them."""
    found = _part(question.text)
    if found is None:
        rank_by(conversation, answer, question)
        return
    title, has = found
    answer.complete, order = True, conversation.order
    took: list[float] = []
    for plan in dict.fromkeys(whole(conversation, plan) for plan in question.plans):
        prediction = prediction_of(conversation, plan)
        parts = [part for part in prediction.parts if has(part) and part.exposed_s > 0]
        took.append(sum(part.exposed_s for part in parts))
        name = f"proposal {order.index(plan) + 1}, {plan}" if plan in order else str(plan)
        answer.add(f"{name}: {title} {_share(prediction, took[-1])} (modelled)")
        answer.add(*(f"- {_named(part)}: {_share(prediction, part.exposed_s)}" for part in parts if len(parts) > 1))
    if len(took) == _TWO:
        side = "more" if took[0] > took[1] else "less"
        answer.add(f"The one named first has {format_seconds(abs(took[0] - took[1]))} {side} of it in a step.")


def _part(text: str) -> tuple[str, Callable[[TimePart], bool]] | None:
    return next(((title, has) for words, title, has in _PARTS if words.search(text)), None)


def _named(part: TimePart) -> str:
    meaning = next((meaning for axis, meaning in MEANINGS.items() if axis == part.axis), part.axis)
    return f"{part.name} of {meaning}" if meaning else part.name


def _share(prediction: Prediction, seconds: float) -> str:
    step = sum(part.exposed_s for part in prediction.parts)
    if not step:
        return "not predicted"
    return f"{format_seconds(seconds)}, {format_percent(seconds / step)} of its step" if seconds else "none"
