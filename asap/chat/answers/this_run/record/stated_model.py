"""What is said of the model, beside its record: "the embeddings are tied", "8 kv heads", "vocab is 128k"."""

import re

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.model_facts import ModelFact, model_facts, written
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import is_question
from asap.models import Architecture, count_parameters
from asap.models.architecture import REQUIRED

_STATES = re.compile(
    r"\b(?:is|are|has|have|uses?|with|it's|we're|fwiw|btw|fyi|actually|aren't|isn't|don't|doesn't)\b", re.I
)
_SUPPOSED = re.compile(
    r"\b(?:if|what|would|could|should|suppose\w*|can|may|will|max|enough|ok|right|try|want|instead|why|how)\b", re.I
)
_BILLION, _FEW = 1e9, 5


def states_model(question: Question) -> bool:
    """Whether it says something of the architecture, and asks nothing."""
    text = question.text
    told = (
        (_STATES.search(text) is not None or (question.change.empty and len(text.split()) <= _FEW))
        and not _SUPPOSED.search(text)
        and not is_question(text)
    )
    return told and not question.plans and bool(model_facts(text))


def stated_model(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Whether the record has it so; a chat cannot change a model, so the command that can is named."""
    model, answer.complete = conversation.study.experiment.model, True
    known = model or Architecture()
    said = model_facts(question.text)
    wrong = [one for one in said if not one.agrees(getattr(known, one.field))]
    same = [one for one in said if one not in wrong]
    if model is not None and same:
        answer.add(f"The record has it so: {', '.join(one.written for one in same)}. Nothing changes.")
    if not wrong:
        return
    has = ", ".join(f"{one.field}={written(getattr(known, one.field) if model else None)}" for one in wrong)
    given = " ".join(f"model.{one.written}" for one in wrong)
    answer.add(
        f"The record has {has}. A chat cannot change the model: nothing is recorded. Analyse it so: asap analyze"
        f" CONFIG {given}."
    )
    if model is not None and not model.missing() and (size := _parameters(known, wrong)) is not None:
        now = count_parameters(model).total / _BILLION
        answer.add(f"That would be {size:.3g} B parameters instead of {now:.3g} B.")
    elif left := [name for name in REQUIRED if getattr(known, name) is None and name not in {w.field for w in wrong}]:
        answer.add(f"To predict HBM it needs these as well: {', '.join(left)}.")


def _parameters(model: Architecture, said: list[ModelFact]) -> float | None:
    try:
        changed = Architecture.model_validate(
            {**model.model_dump(exclude={"name"}), **{one.field: one.value for one in said}}
        )
    except ValueError:
        return None
    return count_parameters(changed).total / _BILLION
