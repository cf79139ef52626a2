"""A form of question, known by the plans, the change, the figures or the words in it."""

from collections.abc import Callable
from dataclasses import dataclass

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic


@dataclass(frozen=True)
class Form:
    """A form of question.

    Args:
        has: whether a question has it.
        answer: puts the answer together.
        topic: what such a question is about; ``None`` where its own topic stays, or the answer says it.
    """

    has: Callable[[Conversation, Question], bool]
    answer: Callable[[Conversation, ReplyBuilder, Question], None]
    topic: Topic | None = None
