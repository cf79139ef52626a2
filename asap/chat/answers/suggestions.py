"""Questions that can be answered and are like one that was not understood."""

from asap.chat.answers.by_topic import ANSWERS
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.masks import masked
from asap.chat.understanding.topics.retrieval import retrieval

_MOST = 2


def suggestions(question: Question) -> list[str]:
    """Examples of the nearest topics that have one, nearest first; a topic with a score below zero is not near."""
    near = [one for one in retrieval().matches(masked(question.text, question.amounts)) if one.score > 0]
    examples = (ANSWERS[one.topic].example for one in near if one.topic in ANSWERS)
    return [example for example in examples if example is not None][:_MOST]
