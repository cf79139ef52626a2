"""What a question that was not understood is offered: what was read of it, and questions like it."""

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


def understood(question: Question) -> list[str]:
    """The plans and the changes that were read in a question, in its order."""
    plans = [f"proposal {one.rank}" if one.rank else str(one.plan) for one in question.refs.mentions]
    change = question.change
    counts = [f"{thing.replace('_', ' ')} {'times ' if to.factor else ''}{to.value:g}" for thing, to in change.counts]
    named = (change.hardware, change.precision, change.optimizer, change.network)
    remat = f"remat {change.remat}" if change.remat else None
    return list(dict.fromkeys([*plans, *counts, *filter(None, (*named, remat))]))
