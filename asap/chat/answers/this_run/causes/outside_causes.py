"""Causes that no prediction counts, "maybe it is the dataloader": what would show them, and what is on record."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from asap.chat.answers.this_run.causes.symptoms import symptom_in
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import asks_how_to_tell
from asap.chat.understanding.words.worth import asks_verdict
from asap.core.units import format_percent, format_seconds
from asap.evidence.anchor import modelled_now
from asap.evidence.step_time import current_step_time
from asap.profiles.profile import Kpis

_SUSPECTED = re.compile(
    r"\b(?:maybe|perhaps|possibly|probably|likely|suspect\w*|wonder\w*|looks like|i (?:think|guess|bet)|could|might|may"
    r"|can|is (?:it|that|this)|isn't (?:it|that|this)|are (?:we|they)|explain\w*|caus\w+|because|due to|problem|issue"
    r"|culprit|in (?:your|the) (?:numbers?|figures?|predictions?|estimates?)|includ\w*|account\w*|count\w*|consider\w*"
    r"|matters?|affect\w*|hurt\w*|slow\w*|lag\w*|hang\w*|worth|costs?|overhead|(?:it|that|this)(?: is|'s))\b",
    re.I,
)


@dataclass(frozen=True)
class Cause:
    """Something beside the step that costs time.

    Args:
        words: that name it.
        title: at the start of a sentence.
        sign: what would show it.
        on_record: what a profile says of it; ``None`` where it says nothing.
    """

    words: re.Pattern[str]
    title: str
    sign: str
    on_record: Callable[[Kpis], str | None]


def _input(kpis: Kpis) -> str | None:
    if kpis.input is None:
        return None
    return f"in the profile {format_percent(kpis.input)} of the step waits for input or the host"


def _variation(kpis: Kpis) -> str | None:
    if not kpis.step_time_s or kpis.step_time_min_s is None or kpis.step_time_max_s is None:
        return None
    spread = f"{format_seconds(kpis.step_time_min_s)} to {format_seconds(kpis.step_time_max_s)}"
    return f"the steps of the profile take {spread}; undisturbed ones vary by about 3 %"


def _idle(kpis: Kpis) -> str | None:
    return (
        None if kpis.idle is None else f"in the profile the device is idle for {format_percent(kpis.idle)} of the time"
    )


def _cause(words: str, title: str, sign: str, on_record: Callable[[Kpis], str | None]) -> Cause:
    return Cause(re.compile(rf"\b(?:{words})\b", re.I), title, sign, on_record)


_SLOW = r"(?:slow|bad|broken|degraded|sick|faulty|flaky|weak|defect\w*|lagg?\w*)"
_CAUSES = (
    _cause(
        rf"straggl\w+|{_SLOW} (?:chips?|gpus?|tpus?|devices?|nodes?|hosts?|ranks?|machines?|links?)|noisy neighbou?rs?"
        r"|(?:rank|worker|gpu|chip|device|node|host) #?\d+(?= (?:is|are|was|lags?|hangs?|runs?|seems?|looks?))",
        "A slow device or host",
        "all others wait for it in their collectives: compare the time of one step and of its collectives rank by rank"
        " (asap trace replay); the slow rank waits least. Steps without that rank settle it",
        _variation,
    ),
    _cause(
        r"data ?load\w*|input pipeline|data pipeline|tokeni[sz]\w+|data (?:is )?reading|storage|disk|gcs|s3|filesystem"
        r"|input[- ]bound",
        "The input pipeline",
        "the device waits at the start of each step, and the step is shorter with synthetic data"
        " (asap profile kpis LOG_DIR, input)",
        _input,
    ),
    _cause(
        r"(?:async\w*|distributed|dcp|orbax|model|frequent|sav\w+|writ\w+)[- ]checkpoint\w*"
        r"|checkpoint[- ](?:sav\w*|writ\w*|interval|frequency|overhead|costs?|time|upload\w*)|evaluat\w+|evals?",
        "Checkpoints and evaluation",
        "a few steps are far longer than their neighbours, at a regular distance; the others tell the step. Written"
        " beside the step they cost host memory, and nothing of the step but the copy",
        _variation,
    ),
    _cause(
        r"garbage[- ]collect\w*|gc|python|gil|logging|wandb",
        "The program on the host",
        "the device is idle at the same place of every few steps, while the host is busy"
        " (asap trace replay, host-bound)",
        _idle,
    ),
    _cause(
        r"throttl\w*|power[- ]cap\w*|power[- ]limit\w*|clocks?|therm\w+|overheat\w*",
        "A lower clock",
        "all compute kernels take longer by one factor, also those of one device alone; predictions take the clock of"
        " published runs on this chip",
        _variation,
    ),
    _cause(
        r"fragment\w+|allocator|cuda[- ]?malloc|memory leak\w*",
        "The allocator",
        "steps near the limit of HBM vary, with allocations between kernels; what is reserved grows above what is used",
        _idle,
    ),
)  # fmt: skip


def outside_cause(question: Question) -> Cause | None:
    """The cause that a message suspects or asks about; ``None`` if it is of none."""
    text = question.text
    named = next((cause for cause in _CAUSES if cause.words.search(text)), None)
    if named is None or symptom_in(question) is not None or question.refs.ranked or question.refs.written:
        return None
    return named if _SUSPECTED.search(text) or asks_verdict(text) or asks_how_to_tell(text) else None


def say_outside_cause(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """That no prediction counts it, what would show it, what is on record, and how much room a measured step leaves."""
    cause = outside_cause(question)
    if cause is None:
        return
    study = conversation.study
    kpis = study.profile.kpis if study.profile is not None else None
    known = cause.on_record(kpis) if kpis is not None else None
    answer.complete = True
    answer.add(
        f"{cause.title}: no prediction here counts it, and {known or 'nothing on record says how much it is'}.",
        f"What would show it: {cause.sign}.",
    )
    measured, expected = current_step_time(study, conversation.evidence), modelled_now(study)
    if measured is None:
        answer.add("State the step that you measure: what it takes beyond the prediction has such a cause.")
    elif expected is not None and expected.step_time is not None:
        beyond = measured.value - expected.step_time.value
        room = f"{format_seconds(beyond)} beyond" if beyond > 0 else "no longer than"
        answer.add(
            f"The measured step of {format_seconds(measured.value)} is {room} the modelled"
            f" {format_seconds(expected.step_time.value)}"
            + (
                f" ({format_percent(beyond / measured.value, 0)} of it)."
                if beyond > 0
                else ": it leaves no room for that."
            )
        )
