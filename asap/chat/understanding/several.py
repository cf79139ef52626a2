"""Several questions in one line: each is read, and answered, by itself."""

import re

from asap.chat.understanding.question import Question
from asap.chat.understanding.question_reading import read_question
from asap.chat.understanding.scene import Scene
from asap.chat.understanding.topics.topics import Topic
from asap.core.errors import PlanError

_ASKS = r"(?:what|how|which|why|where|who|when|is|are|do|does|can|could|should|will|would)\b"
_BREAK = re.compile(
    rf"(?<=[?!;])\s+|\s*[,;]?\s+(?:and|&|plus)\s+(?:also\s+)?(?={_ASKS})|\s*,\s+(?=(?:what|how|which|why|where|when)\b)",
    re.I,
)
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


def _stands_alone(question: Question) -> bool:
    open_ = question.ellipsis or question.unused or not question.change.empty or question.refs.written
    return question.topic is not Topic.UNKNOWN and not open_
