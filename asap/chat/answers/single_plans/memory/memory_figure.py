"""What a figure of HBM is: how certain, a peak or an average, what it includes."""

import re

from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.memory.fit_check import how_to_check
from asap.chat.answers.single_plans.memory.quoted_memory import with_verdict
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_bytes, format_percent, significant
from asap.plans import Plan

_OF_MEMORY = re.compile(r"\b(?:hbm|v?ram|mem(?:ory)?|gi?bs?|gigs?)\b|\d\s*gi?b?\b", re.I)
_FIGURE = re.compile(
    r"\baccura\w+|\btrust\w*|\breliab\w+|\bprecis\w+|\bexact\w*|\berror\b|\bmargin\w*"
    r"|\bhow (?:sure|certain|good|far off)"
    r"|\boff by\b|\buncertain\w*|\bpeak\b|\baverage\b|\bavg\b|\binclud\w*|\bcover\w*|\bcontain\w*"
    r"|\bcount(?:s|ed|ing)?\b"
    r"|\b(?:what(?: is| are)?|is) in (?:it|there|that)\b",
    re.I,
)
_FITS = r"oom\w*|fits?|run\w* out|out[- ]of[- ]memory|blow\w* up|overflow\w*"
_SURE_TO_FIT = re.compile(
    r"\b(?:sure|certain|confident|positive|guarantee\w*|promise|bet|chances?|odds|likely|likelihood|probab\w*|risky?|safe"
    rf"|afraid|worr\w+)\b[^.?!]*\b(?:{_FITS})\b|\bp\(?fits?\)?\b"
    r"|\benough (?:\w+ )?(?:headroom|room|margin|slack)\b|\b(?:headroom|margin|slack) enough\b",
    re.I,
)


def asks_memory_figure(question: Question) -> bool:
    """Whether it asks what a figure of HBM is worth or what it is of, or how sure it is that a plan fits."""
    text = question.text
    if not question.change.empty or question.refs.wish is not None:
        return False
    of_memory = _OF_MEMORY.search(text) is not None or question.context.topic is Topic.MEMORY
    return _SURE_TO_FIT.search(text) is not None or (of_memory and _FIGURE.search(text) is not None)


def memory_figure(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of the plan that is named, whose figure is quoted or that was spoken of, else of the first proposal.

    Raises:
        InsufficientEvidenceError: HBM cannot be predicted.
    """
    study, now = conversation.study, conversation.study.plan
    spoken_of = [conversation.focus] if conversation.focus else []
    known = [
        *question.plans,
        *with_verdict(conversation, question.text),
        *_quoted(conversation, question),
        *spoken_of,
        *conversation.order,
        *([now] if now else []),
    ]
    held = prediction_of(conversation, whole(conversation, known[0])).memory if known else None
    if held is None:
        raise InsufficientEvidenceError("HBM of the plan cannot be predicted", where=conversation.id)
    plan = answer.focus = whole(conversation, known[0])
    total, odds = held.total, held.probability_fits
    ends = (
        f" ({format_bytes(total.low)} to {format_bytes(total.high)} in 90 % of cases)"
        if total.low and total.high
        else ""
    )
    sure = f"; P(fits) {format_percent(odds, 0)}" if odds is not None else ""
    answer.add(
        f"{plan}: {format_bytes(total.value)}{ends} of {format_bytes(held.capacity_bytes)} HBM ({held.verdict}{sure};"
        f" {total.provenance.value}). It is the peak of a step on the fullest chip, and not an average.",
        "It is made of: "
        + ", ".join(f"{part.name} {format_bytes(part.size_bytes)}" for part in held.parts if part.size_bytes > 0)
        + ". Temporaries are what the compiler or the kernels need meanwhile, the logits among them.",
        how_to_check(study, plan),
    )
    answer.add_figure(f"{plan}: HBM", total)


def _quoted(conversation: Conversation, question: Question) -> list[Plan]:
    """The proposals, or what runs now, whose HBM is quoted: "is 10.4 GiB the peak?"."""
    said = {significant(amount.value) for amount in question.amounts if amount.unit in {"GiB", "GB"}}
    now = conversation.study.plan
    known = [*conversation.order, *([now] if now else [])]
    held = [(plan, prediction_of(conversation, plan).memory) for plan in known] if said else []
    return [plan for plan, memory in held if memory and significant(memory.total.value / 2**30) in said]
