"""FLOP/s that the run itself reaches: "what tflops are we at", "meta has 400 tflops a gpu, and us?"."""

import re
from dataclasses import replace

from asap.chat.answers.single_plans.figures import prediction_of, subjects
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import is_question
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_percent, significant

_FLOPS = re.compile(r"\b[tp]?[- ]?flops?\b", re.I)
_OURS = re.compile(
    r"\b(?:we|us|ours?|mine|my|i)\b[^?]*\b(?:at|get(?:ting)?|do(?:ing)?|reach\w*|hit\w*|see\w*|achiev\w*|what|where|stand)\b"
    r"|\b(?:what|where|how (?:many|much))\b[^?]*\b(?:we|us|ours?|mine|my|i|now|proposal)\b|\band (?:us|ours|we)\b",
    re.I,
)
_ASKS_LAST = re.compile(r"\b(?:what|where|how (?:many|much))\W*$", re.I)
_PEAK = re.compile(r"\b(?:peak|data ?sheet|spec\w*|max(?:imum)?|assum\w*|use[ds]?|took|take)\b", re.I)


def asks_own_rate(question: Question) -> bool:
    """Whether it asks how many FLOP/s the run, or a plan, reaches on a chip."""
    text = question.text
    asked = (
        _FLOPS.search(text) is not None
        and _OURS.search(text) is not None
        and (is_question(_end(text)) or _ASKS_LAST.search(text) is not None)
    )
    quoted = any(amount.unit == "FLOP/s" for amount in question.amounts)
    return asked and (question.change.empty or quoted) and not _PEAK.search(text)


def own_rate(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """TFLOP/s a chip by its MFU, beside the figure that is quoted.

    Raises:
        InsufficientEvidenceError: the hardware or the MFU is not known.
    """
    hardware = conversation.study.slice
    peak = hardware.chip.peak_flops.get("bf16") if hardware else None
    here = replace(question, change=Change())
    known = [(name, found.mfu.value) for name, found in subjects(conversation, here) if found.mfu is not None]
    if hardware is None or not peak or not known:
        raise InsufficientEvidenceError("MFU cannot be predicted without model, batch and chip", where=conversation.id)
    answer.complete, peak = True, peak / hardware.chip.devices
    best = next(iter(conversation.order), None)
    if best is not None and not question.plans and (mfu := prediction_of(conversation, best).mfu) is not None:
        known.append((f"proposal 1 ({best})", mfu.value))
    for name, mfu in known:
        answer.add(
            f"{name}: {significant(mfu * peak / 1e12)} TFLOP/s a device, MFU {format_percent(mfu)} of"
            f" {significant(peak / 1e12)} (modelled; model FLOPs, bf16 peak)"
        )
    for amount in question.amounts:
        if amount.unit == "FLOP/s":
            said, share = significant(amount.value / 1e12), format_percent(amount.value / peak)
            answer.add(f"{said} TFLOP/s would be {share} MFU here.")


def _end(text: str) -> str:
    """What stands behind the last comma: there a remark ends in a question."""
    return text.rpartition(",")[2].strip() if not is_question(text) else text
