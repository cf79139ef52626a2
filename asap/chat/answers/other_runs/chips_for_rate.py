"""The fewest chips that train so many tokens a second: the slice of now halved or doubled until they do."""

import re

from asap.chat.answers.other_runs.fewest_chips import fastest_that_fits
from asap.chat.answers.phrasing import figures_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import significant
from asap.prediction.prediction import Prediction

_DOUBLINGS = 4
_HOW_MANY = re.compile(
    r"\b(?:how many|how few|fewest|min(?:imum|imal)?|number of|least|enough)\b[^.?!]*"
    r"\b(?:chips?|gpus?|tpus?|devices?|cores?|accelerators?)\b",
    re.I,
)


def rate_wanted(question: Question) -> float | None:
    """Tokens/s for which a question asks how many chips it needs."""
    if not _HOW_MANY.search(question.text):
        return None
    return next((amount.value for amount in question.amounts if amount.unit == "tokens/s"), None)


def chips_for_rate(conversation: Conversation, answer: ReplyBuilder, rate: float) -> None:
    """At the batch of now, and at one that grows with the chips.

    Raises:
        InsufficientEvidenceError: hardware or batch is not known.
    """
    study = conversation.study
    batch = study.experiment.workload.global_batch
    if study.slice is None or batch is None:
        raise InsufficientEvidenceError("the hardware or the batch is not known", where=conversation.id)
    now = study.slice.devices
    answer.add(f"{significant(rate, 4)} tokens/s, on the {now} chips of now halved or doubled:")
    for label, grows in ((f"batch of now ({batch})", False), ("batch that grows with the chips", True)):
        found = _fewest(conversation, rate, now, batch if grows else None)
        if found is None:
            answer.add(f"- {label}: not predicted on up to {now * 2**_DOUBLINGS} chips")
            continue
        answer.add(f"- {label}: {found.plan.devices} chips, {found.plan}: {figures_of(found)}")
        answer.add_figure(f"{found.plan} on {found.plan.devices} chips: tokens per second", found.tokens_per_second)
    answer.add("A larger batch is another training recipe. The interval of the step time holds for the rate, too.")


def _fewest(conversation: Conversation, rate: float, now: int, batch: int | None) -> Prediction | None:
    """Upwards until it is reached, or downwards as long as it is; ``batch`` is that of now, if it is to grow."""

    def reached(chips: int) -> Prediction | None:
        there = fastest_that_fits(conversation, chips, batch and max(1, batch * chips // now))
        enough = there and there.tokens_per_second and there.tokens_per_second.value >= rate
        return there if enough else None

    best = reached(now)
    if best is None:
        return next(filter(None, (reached(now * 2**power) for power in range(1, _DOUBLINGS + 1))), None)
    for power in range(1, now.bit_length()):
        fewer = reached(now // 2**power)
        if fewer is None:
            break
        best = fewer
    return best
