"""What the HBM of a plan is computed from: what is divided, what rematerialisation keeps, and what would check it."""

import re

from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.memory.fit_check import how_to_check
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import counted, format_bytes
from asap.plans import Plan
from asap.plans.axes import MEANINGS
from asap.study.study import Study

_OF_MEMORY = re.compile(
    r"\b(?:hbm|memory|gib|gb|activations?|optimi[sz]er|gradients?|temporaries|fits?|fitting)\b|\d\s*g(?:i?b)?\b", re.I
)
_OF_TIME = re.compile(r"\bstep[- ]?times?\b|\bmfu\b|\btokens?/s\b", re.I)


def asks_memory_basis(question: Question) -> bool:
    """Whether it asks where figures of HBM come from."""
    if _OF_TIME.search(question.text):
        return False
    return _OF_MEMORY.search(question.text) is not None or question.context.topic is Topic.MEMORY


def memory_basis(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of the plan that is named, else of what runs now.

    Raises:
        InsufficientEvidenceError: no plan is known, or its HBM cannot be predicted.
    """
    study = conversation.study
    named = next(iter(question.plans), study.plan)
    held = prediction_of(conversation, whole(conversation, named)).memory if named is not None else None
    if named is None or held is None:
        raise InsufficientEvidenceError("HBM of the plan cannot be predicted", where=conversation.id)
    plan = whole(conversation, named)
    answer.focus = plan
    answer.add(
        f"The HBM of {plan}, {format_bytes(held.total.value)} on the fullest chip, is modelled from the"
        " architecture and the plan:",
        *(f"- {part.name}: {format_bytes(part.size_bytes)}{_origin(study, plan, part.name)}" for part in held.parts),
        how_to_check(study, plan),
    )
    answer.add_figure(f"{plan}: HBM", held.total)


def _origin(study: Study, plan: Plan, part: str) -> str:
    """What a part follows from."""
    model, workload = study.experiment.model, study.experiment.workload
    if part in {"parameters", "gradients", "optimizer"}:
        over = [MEANINGS[axis] for axis in MEANINGS if plan.degree(axis) > 1 and axis not in {"replica", "seq"}]
        return f", divided by {' and '.join(over)}" if over else ", whole on each chip"
    if part == "activations" and workload.global_batch and model is not None:
        at_once = workload.global_batch / plan.batch_shards / (plan.microbatches or 1)
        layers = counted((model.layers or 0) / plan.degree("stage"), "layer")
        kept = f"what remat={plan.remat} keeps" if plan.remat is not None else "what is kept"
        return (
            f", {kept} of {layers} for {counted(at_once, 'sequence')} at once, each of"
            f" {workload.sequence_length} tokens"
        )
    return ""
