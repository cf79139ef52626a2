"""How to find out whether a plan fits before it runs: what the compiler can tell, else a few steps; and the"
" prediction."""

import re

from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.questions import asks_how_to_tell
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_bytes, format_percent
from asap.plans import Plan
from asap.study.study import Study

_FIT = re.compile(
    r"\b(?:fit|fits|fitting|oom\w*|out[- ]of[- ](?:\w+[- ])?memory|enough (?:memory|hbm)|memory (?:first"
    r"|beforehand))\b",
    re.I,
)
_HOW_LONG = re.compile(r"\bhow (?:long|much time|slow|fast)\b[^.?!]*\b(?:that|it|this|one)\b|\bhow long\W*$", re.I)
_BEFOREHAND = re.compile(
    r"\b(?:any|a|some|is there)\b[^.?!]*\bway (?:to|of)\b[^.?!]*\b(?:check\w*|know\w*|tell\w*|find\w*|see\w*"
    r"|test\w*)\b",
    re.I,
)


def asks_fit_check(question: Question) -> bool:
    """Whether it asks how to find out whether something fits, and not whether it does."""
    text = question.text
    asked = asks_how_to_tell(text) or _BEFOREHAND.search(text) is not None
    return asked and _FIT.search(text) is not None


def asks_how_long(question: Question) -> bool:
    """Whether it asks how long that takes, after it was said how to verify a plan."""
    return question.context.topic is Topic.VERIFY and _HOW_LONG.search(question.text) is not None


def time_to_compile(conversation: Conversation) -> list[str]:
    """How long the compiler takes, as it was seen (docs/verify.md); nothing where none can be asked."""
    hardware = conversation.study.slice
    if hardware is None or hardware.chip.kind != "tpu":
        return []
    return [
        "Compiling: minutes, without a TPU. A 7B model on 16 chips took one minute on two cores, 18 s with"
        " --effort least"
        " (memory and collectives, no step time); more chips and experts take longer."
    ]


def fit_check(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of the plan that is named or was spoken of, else of what runs now.

    Raises:
        InsufficientEvidenceError: no plan is known.
    """
    study = conversation.study
    named = next(iter(question.plans), conversation.focus or study.plan)
    if named is None:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id, hint="--plan PLAN")
    plan = whole(conversation, named)
    answer.focus = plan
    answer.add(how_to_check(study, plan))
    held = prediction_of(conversation, plan).memory
    if held is None:
        return
    odds = "" if held.probability_fits is None else f", P(fits) {format_percent(held.probability_fits, 0)}"
    answer.add(
        f"Predicted for {plan}: {format_bytes(held.total.value)} of {format_bytes(held.capacity_bytes)} HBM"
        f" ({held.verdict}{odds}; {held.total.provenance.value})."
    )
    answer.add_figure(f"{plan}: HBM", held.total)


def how_to_check(study: Study, plan: Plan) -> str:
    """What tells whether a plan fits: the compiler of TPUs without a run; compilers of GPUs need the GPU."""
    if study.slice is not None and study.slice.chip.kind == "tpu":
        return (
            f'Compile it, without a TPU: asap verify {study.experiment.id} --plan "{plan}" --effort least. That takes'
            " a minute or so, and gives peak HBM by part and whether it fits."
        )
    chip = study.slice.chip.title if study.slice else "this hardware"
    return (
        f"Run three steps of it and read the peak: no compiler tells without the GPU ({chip}), and asap verify judges"
        " HBM for TPUs alone. The peak comes in the first full step, optimizer included."
    )
