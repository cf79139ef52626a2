"""Questions that can be answered and are like one that was not understood."""

from asap.chat.answers.by_topic import ANSWERS
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.masks import masked
from asap.chat.understanding.topics.retrieval import retrieval

_MOST = 2
_NEAR = 0.7
"""Share of the score of an understood question from which a topic is offered."""


def suggestions(question: Question) -> list[str]:
    """An example of each of the nearest topics, nearest first; empty where none is near."""
    found = retrieval()
    near = [
        one for one in found.matches(masked(question.text, question.amounts)) if one.score >= _NEAR * found.threshold
    ]
    examples = (ANSWERS[one.topic].example for one in near[:_MOST] if one.topic in ANSWERS)
    return [example for example in examples if example is not None]
