"""A chip that does not exist, "what if ICI were twice as fast", "with 2x the HBM": what that could change at most."""

import re

from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.this_run.causes.suspected import Suspect, predicted_parts, resource_named
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import GIB, format_bytes, format_percent, format_seconds
from asap.diagnosis.diagnosis import Bottleneck

_SUPPOSES = re.compile(r"\b(?:if|suppose|imagine|pretend|assum\w+|were|would|had)\b", re.I)
_HBM = re.compile(r"\b(?:hbm|v?ram|memory)\b(?!\s*(?:bandwidth|bw|rate|speed|bound))", re.I)
_CHIP_HAS = re.compile(r"\b(?:chips?|devices?|[gt]pus?|cores?)\s+(?:had|has|have|with|were|came with)\b", re.I)
_RATE = re.compile(r"\b(?:bandwidth|bw|fast\w*|slow\w*|speed|rate|flops?|compute)\b", re.I)
_BYTES = {"GiB": float(GIB), "GB": 1e9}
_OF_A_CHIP = {Bottleneck.COMMUNICATION, Bottleneck.HBM, Bottleneck.COMPUTE}


def imagines_chip(question: Question) -> bool:
    """Whether it supposes another rate or another size of HBM of the chips, and no chip that exists."""
    if not _SUPPOSES.search(question.text) or not question.change.empty or question.refs.written:
        return False
    return _size(question) is not None or _rate(question) is not None


def imagined_chip(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What would fit, or how much shorter the step could become.

    Raises:
        InsufficientEvidenceError: neither the memory nor the parts of the step are predicted.
    """
    answer.complete = True
    if (size := _size(question)) is not None:
        _with_memory(conversation, answer, *size)
    elif (rate := _rate(question)) is not None:
        _with_rate(conversation, answer, *rate)
    answer.add('Chips are taken as they are sold. For one that exists, ask "what about v5p?"; nothing is recorded.')


def _size(question: Question) -> tuple[float, bool] | None:
    """Bytes of HBM of a chip; or, with ``True``, how many times those of now."""
    text = question.text
    sizes = [one.value * _BYTES[one.unit] for one in question.amounts if one.unit in _BYTES]
    if len(sizes) == 1 and (_HBM.search(text) or _CHIP_HAS.search(text)):
        return sizes[0], False
    factor = _factor(question)
    return (factor, True) if factor and _HBM.search(text) and not _RATE.search(text) else None


def _rate(question: Question) -> tuple[Suspect, float] | None:
    """A resource, and how many times as fast it is."""
    factor, resource = _factor(question), resource_named(question.text)
    if not factor or resource is None or resource.kind not in _OF_A_CHIP or not _RATE.search(question.text):
        return None
    slower = factor > 1 and re.search(r"\bslow\w*\b", question.text, re.I) is not None
    return resource, 1 / factor if slower else factor


def _factor(question: Question) -> float | None:
    factors = [one.value for one in question.amounts if one.unit == "x" and one.value > 0]
    return factors[0] if len(factors) == 1 else None


def _with_memory(conversation: Conversation, answer: ReplyBuilder, size: float, times: bool) -> None:
    """What would fit in so much HBM, less the share that the runtime keeps now."""
    study = conversation.study
    plans = [*((study.plan,) if study.plan is not None else ()), *conversation.order]
    held = [(plan, memory) for plan in plans if (memory := prediction_of(conversation, plan).memory) is not None]
    if not held or study.slice is None:
        raise InsufficientEvidenceError("HBM is not predicted for this run", where=conversation.id)
    capacity = held[0][1].capacity_bytes
    whole = study.slice.chip.hbm_bytes
    room = capacity * size if times else size * min(capacity / whole, 1.0)
    answer.add(f"With {format_bytes(room)} of HBM that a job can use, instead of {format_bytes(capacity)} (modelled):")
    for plan, memory in held:
        need = memory.total.value
        name = "what runs now" if plan == study.plan else f"proposal {conversation.order.index(plan) + 1}"
        answer.add(f"- {name}, {plan}: {format_bytes(need)}, {'fits' if need <= room else 'does not fit'}")
    answer.focus = held[0][0]


def _with_rate(conversation: Conversation, answer: ReplyBuilder, resource: Suspect, factor: float) -> None:
    """The step if all that the resource adds to it took so many times less, and nothing else changed."""
    now = conversation.study.plan
    parts = predicted_parts(conversation)
    if now is None or not parts:
        raise InsufficientEvidenceError("what the step is made of is not predicted", where=conversation.id)
    step = sum(part.exposed_s for part in parts)
    own = sum(part.exposed_s for part in parts if resource.has(now, part, conversation))
    then = step - own * (1 - 1 / factor)
    answer.add(
        f"{resource.title[0].upper()}{resource.title[1:]} adds {format_seconds(own)} to the step of what runs now,"
        f" {format_percent(own / step)} of {format_seconds(step)} (modelled). {factor:g} times as fast, and"
        f" nothing else changed, the step would take about {format_seconds(then)}."
    )
    answer.focus = now
