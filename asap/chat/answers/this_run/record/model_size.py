"""The model on record and its parameters; what is said of another model changes nothing."""

import re

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import is_question
from asap.core.errors import InsufficientEvidenceError
from asap.core.text import plain
from asap.core.units import significant
from asap.models.parameters import count_parameters

_COUNT = re.compile(
    r"\bhow (?:many|much|big|large)\b[^.?!]*\b(?:param\w*|active|activated|(?:is|are) (?:the|our|this) model)\b"
    r"|\b(?:active|total) param\w*|\bparam\w* count\b|\bmodel size\b|\bsize of (?:the|our|this) model\b",
    re.I,
)
_OF_MEMORY = re.compile(r"\b(?:memory|hbm|gi?b|bytes|take|fit|sharded|shard|offload\w*|host)\b", re.I)
_SAID = re.compile(
    r"\b(?:models?|llm|network|we (?:train|run)|we'?re training|it(?: i|')s|this is|is (?:it|this|that))\b"
    r"[^.?!\d]{0,30}\b(?P<billions>\d+(?:\.\d+)?)\s?"
    r"(?:b|bn|billion)\b(?!\s*tok)",
    re.I,
)
_SAME = 0.1
"""Share within which two sizes are of one model: names round."""
_BILLION = 1e9


def asks_model_size(question: Question) -> bool:
    """Whether it asks for the parameters of the model, or says how many it has."""
    text = question.text
    asked = _COUNT.search(text) is not None and _OF_MEMORY.search(text) is None
    return asked or (_SAID.search(text) is not None and not question.tokens)


def model_size(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The parameters on record, and what to do if the model is another one.

    Raises:
        InsufficientEvidenceError: the architecture is not on record.
    """
    model = conversation.study.experiment.model
    said = _SAID.search(question.text) if not is_question(question.text) else None
    if model is None and said is not None:
        answer.add(
            "The chat cannot take a model: nothing is recorded. With its architecture on record, HBM is predicted and"
            " intervals are narrower: asap experiments add ID --config FILE --hardware NAME."
        )
        return
    if model is None:
        raise InsufficientEvidenceError(
            "the architecture of the model is not on record",
            where=conversation.id,
            hint="asap experiments add ID --config FILE --hardware NAME",
        )
    counted = count_parameters(model)
    active = f", {significant(counted.active / _BILLION)} B of them active for each token" if model.is_moe else ""
    name = plain(model.name) if model.name else "a model without a name"
    answer.add(f"On record is {name} with {significant(counted.total / _BILLION)} B parameters{active}.")
    if said is None:
        return
    if abs(float(said["billions"]) * _BILLION / counted.total - 1) > _SAME:
        answer.add(
            f"The chat cannot make it {said['billions']} B: nothing is recorded, and every figure stays that of the"
            " model on record. Add the run anew: asap experiments add ID --config FILE --hardware NAME."
        )
