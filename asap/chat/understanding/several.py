"""Several questions in one line: each is read, and answered, by itself."""

import re

from asap.chat.understanding.question import Question
from asap.chat.understanding.question_reading import read_question
from asap.chat.understanding.scene import Scene
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.questions import asks_why, is_question
from asap.core.errors import PlanError

_ASKS = r"(?:what|how|which|why|where|who|when|is|are|do|does|can|could|should|will|would)\b"
_BREAK = re.compile(
    rf"(?<=[?!;])\s+|\s*[,;]?\s+(?:and|&|plus)\s+(?:also\s+)?(?={_ASKS})|\s*,\s+(?=(?:what|how|which|why|where|when)\b)",
    re.I,
)
_REASON = re.compile(
    r"^\W*(?:(?:we|i)\W+)?(?:(?:have|'ve)\s+)?(?:got|have)\s+(?:(?:about|only|all|still)\s+)*\d[\d.]*\s*\S+\W*$",
    re.I,
)
"""What there is, as the reason for a question: "got 80 GiB"."""
_BETWEEN = re.compile(r"\s*(?:[?,;&+]|\band\b|\bplus\b)[\s?,;]*", re.I)
_FIGURE = re.compile(
    r"\s*(?:(?:and|ok|so|the|our|its|how much|what(?: is|'s)?)\s+)*"
    r"(?:memory|hbm|vram|step(?: time)?|mfu"
    r"|throughput|tps|tokens/s(?:/\w+)?|fits?|speed|how fast)(?:\s+(?:ok|okay|fine|then|now|there))*\s*",
    re.I,
)
_NUMBERED = re.compile(r"(?:^|\s)[(]?[1-9a-e][).:]\s+(?=\w)")
"""What begins each of several questions: "1) … 2) …"."""
_LEAST_WORDS = 3
"""Of a question; what is shorter, as "morning!", asks nothing by itself."""


def several_in(text: str, scene: Scene) -> tuple[Question, ...]:
    """The questions of a line that asks of more than one topic, or of one behind a remark; empty where it is one.

    What changes the run, names a plan in part or goes on with what stands before is no question by itself.
    """
    parts = [part.strip() for part in _BREAK.split(text) if part and part.strip()]
    parts = [part for part in parts if len(part.split()) >= _LEAST_WORDS]
    if len(parts) < 2:
        return ()
    try:
        read = tuple(read_question(part, scene) for part in parts)
    except PlanError:
        return ()
    questions = [question for question in read if not _REASON.match(question.text)]
    if len(questions) == 1 and is_question(questions[0].text):
        return tuple(questions)
    if len(asked := [question for question in read if _stands_alone(question)]) == 1:
        return tuple(asked) if all(_is_remark(question) for question in read if question not in asked) else ()
    alone = all(_stands_alone(question, first=question is read[0]) for question in read)
    return read if alone and len({question.topic for question in read}) > 1 else ()


def short_ones_in(text: str, scene: Scene) -> tuple[Question, ...]:
    """A question on each figure that a line names and no more, "fits? step, mfu?", one for each topic; else empty."""
    parts = [part for part in _BETWEEN.split(text) if part.strip(" .")]
    if len(parts) < 2 or "?" not in text or not all(_FIGURE.fullmatch(part) for part in parts):
        return ()
    read = {question.topic: question for question in reversed([read_question(f"{part}?", scene) for part in parts])}
    return tuple(reversed(read.values())) if Topic.UNKNOWN not in read else ()


def numbered_in(text: str, scene: Scene) -> tuple[Question, ...]:
    """The questions of a numbered list, whatever they ask; empty where the line is none."""
    parts = [part.strip(" ,;") for part in _NUMBERED.split(text)]
    asked = sum(is_question(part) for part in parts[1:])
    if len(parts) < 3 or len(parts[0].split()) > _LEAST_WORDS or not asked:
        return ()
    try:
        return tuple(read_question(part, scene) for part in parts[1:] if part)
    except PlanError:
        return ()


def _is_remark(question: Question) -> bool:
    """Whether it asks and names nothing, as what is said before a question: "got an hour on it, what first?"."""
    named = question.refs.mentions or question.refs.wish or not question.change.empty
    counted = any(amount.unit not in {"", "other"} for amount in question.amounts)
    return question.topic is Topic.UNKNOWN and not (named or counted or is_question(question.text))


def _stands_alone(question: Question, *, first: bool = False) -> bool:
    """Whether it needs no other part of the line; the first may go on with the line before."""
    open_ = (question.ellipsis and not first) or question.unused or not question.change.empty or question.refs.written
    known = question.topic is not Topic.UNKNOWN or (bool(question.refs.ranked) and asks_why(question.text))
    return known and not open_
