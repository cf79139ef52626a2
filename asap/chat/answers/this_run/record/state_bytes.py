"""In which precision predictions hold weights, gradients and moments: "are the grads fp32 or bf16 in that?"."""

import re

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.worth import asks_verdict
from asap.core.errors import InsufficientEvidenceError
from asap.prediction.step_model.encoding.workload import workload_inputs

_STATE = re.compile(
    r"\b(?:grad(?:ient)?s?|master (?:weights?|cop(?:y|ies)|params?|parameters)|moments?|(?:optimi[sz]er|adam) states?"
    r"|weights|params?|parameters)\b",
    re.I,
)
_PRECISION = re.compile(r"\b(?:fp32|bf16|fp16|float32|(?:half|full|single) precision|precision|dtypes?|bytes?)\b", re.I)
_COUNTED = re.compile(r"\b(?:count\w*|includ\w*|in (?:there|that|it)|account\w*|assum\w*|part of|consider\w*)\b", re.I)
_ASKS = re.compile(r"^\W*(?:(?:and|so|but|ok)\W+)*(?:is|are|was|were|do|does|did|which|what|how many)\b", re.I)
_SUPPOSES = re.compile(
    r"\b(?:if|would|should|could|can|try|use|using|switch\w*|instead|rather|mov\w+|chang\w+|sav\w+|summ\w*|reduc\w*"
    r"|accumulat\w*|why|better|enough|safe|stable)\b",
    re.I,
)
_NAMES = {1.0: "8 bits", 2.0: "bf16", 4.0: "fp32"}


def asks_state_bytes(question: Question) -> bool:
    """Whether it asks what the state is held in, or whether a part of it is counted, and supposes nothing."""
    text = question.text
    if not _STATE.search(text) or _SUPPOSES.search(text) or asks_verdict(text) or question.change.counts:
        return False
    counted = _COUNTED.search(text) is not None and (_ASKS.match(text) is not None or "?" in text)
    return counted or (_PRECISION.search(text) is not None and _ASKS.match(text) is not None)


def state_bytes(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Bytes of each part for a parameter, as every plan of this run is predicted with.

    Raises:
        InsufficientEvidenceError: HBM is not predicted without the architecture.
    """
    experiment = conversation.study.experiment
    if experiment.model is None or experiment.model.missing():
        raise InsufficientEvidenceError("HBM is not predicted without the architecture", where=conversation.id)
    held = workload_inputs(experiment.workload, experiment.model)
    weights, gradients, state = (
        float(each) for each in (held.parameter_bytes, held.gradient_bytes, held.optimizer_bytes)
    )
    answer.complete = True
    master = " with the fp32 master copy" if weights < 4 <= state - 4 else ""
    answer.add(
        f"HBM is predicted with weights in {_named(weights)}, gradients in {_named(gradients)}, and {state:g} bytes of"
        f" optimizer state for each parameter{master}.",
        'If yours are held otherwise, ask with it: "what if bf16 moments", "what if bf16 weights".',
    )


def _named(size: float) -> str:
    return _NAMES.get(size, f"{size:g} bytes")
