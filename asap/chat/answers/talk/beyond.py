"""What the engine cannot tell, in one line with what it can: serving, and what the model learns."""

import re

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.questions import is_question


def serving(conversation: Conversation, answer: ReplyBuilder) -> None:
    """A question on inference: a training run keeps no KV cache and serves no requests."""
    answer.add(
        f"I only know {conversation.id} as a training run: it keeps no KV cache and serves no requests. I can tell its"
        " HBM by part, its step time and its tokens/s."
    )


LEARNING = re.compile(
    r"\b(?:loss|losses|learning[- ]rates?|lr|warm-?up|hyper-?param\w*|converg\w*|accurac\w*|perplexity|quality"
    r"|generali[sz]\w*|grad(?:ient)?[- ]norm|retun\w*)\b",
    re.I,
)
"""Words for what the model learns."""
_OF_PLANS = re.compile(
    r"\b(?:any|all|none|some|each|which|one) of (?:this|these|those|them|it|your \w+|the \w+)\b"
    r"|\b(?:your|the|these|those) (?:proposals?|plans?|changes?|suggestions?|configs?|options?)\b"
    r"|\b(?:do|does|will|would|can|could) (?:this|that|it|they|these|those)\b|\bswitch\w*\b",
    re.I,
)
"""Asks of what was proposed, and not of the training as it is."""


def asks_learning_of_plans(question: Question) -> bool:
    """Whether it asks if what was proposed changes what the model learns."""
    named = any(mention.way != "pointing" for mention in question.refs.mentions)
    of_plans = named or _OF_PLANS.search(question.text) is not None
    return question.topic is Topic.LEARNING and of_plans and is_question(question.text) and question.change.empty


def learning_left_out(question: Question) -> str | None:
    """What an answer on speed and memory leaves open where the question also asks what the model learns."""
    if LEARNING.search(question.text) is None or question.change.empty:
        return None
    return (
        "What that does to the loss, or asks of the learning rate, I cannot predict: another batch, sequence,"
        " precision or optimizer is another training; sharding, microbatches and rematerialisation leave it as it is."
    )


_VERSION = re.compile(
    r"\b(?:jax|jaxlib|libtpu|cuda|nccl|cudnn|torch|pytorch|drivers?|transformer[- ]engine|te)\s*(?:version\s*)?"
    r"v?\d+\.\d+[\w.]*",
    re.I,
)
_JUDGED = re.compile(
    r"\b(?:old|new|ok(?:ay)?|fine|enough|recent|outdated|good|bad|slow|upgrade|update|supported|matters?)\b", re.I
)


def asks_version(question: Question) -> bool:
    """Whether it asks what the version of a library is worth."""
    text = question.text
    return _VERSION.search(text) is not None and (is_question(text) or _JUDGED.search(text) is not None)


def versions(conversation: Conversation, answer: ReplyBuilder) -> None:
    """Versions are on no record: a run with each tells."""
    answer.complete = True
    answer.add(
        "I judge no versions of libraries: no figure here hangs on one, and nothing is recorded. Run the same steps"
        " with each, and state both: the difference is the version's.",
    )


def learning(conversation: Conversation, answer: ReplyBuilder) -> None:
    """A question or a remark on loss, accuracy or convergence."""
    answer.add(
        "I do not know the loss, the accuracy or the learning rate: I predict how fast a step runs and what it holds in"
        " HBM. Nothing is recorded, and no plan ranks differently for it."
    )
