"""Several questions in one line: each is read, and answered, by itself."""

import re

from asap.chat.understanding.question import Question
from asap.chat.understanding.question_reading import read_question
from asap.chat.understanding.scene import Scene
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.questions import is_question
from asap.core.errors import PlanError

_ASKS = r"(?:what|how|which|why|where|who|when|is|are|do|does|can|could|should|will|would)\b"
_BREAK = re.compile(
    rf"(?<=[?!;])\s+|\s*[,;]?\s+(?:and|&|plus)\s+(?:also\s+)?(?={_ASKS})|\s*,\s+(?=(?:what|how|which|why|where|when)\b)",
    re.I,
)
_NUMBERED = re.compile(r"(?:^|\s)[(]?[1-9a-e][).:]\s+(?=\w)")
"""What begins each of several questions: "1) … 2) …"."""
_LEAST_WORDS = 3
"""Of a question; what is shorter, as "morning!", asks nothing by itself."""


def several_in(text: str, scene: Scene) -> tuple[Question, ...]:
    """The questions of a line that asks of more than one topic; empty where it is one question.

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
    alone = all(_stands_alone(question) for question in read)
    return read if alone and len({question.topic for question in read}) > 1 else ()


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


def _stands_alone(question: Question) -> bool:
    open_ = question.ellipsis or question.unused or not question.change.empty or question.refs.written
    return question.topic is not Topic.UNKNOWN and not open_
