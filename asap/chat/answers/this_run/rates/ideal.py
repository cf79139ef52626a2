"""How fast the run could be at all: "what would perfect look like", "theoretical best step time"."""

import re

from asap.chat.answers.this_run.profile import least_step
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_percent, format_seconds

_IDEAL = re.compile(
    r"\b(?:perfect|ideal(?:ly)?|theoretical(?:ly)?|speed of light|upper bound|upper limit|ceiling|hard limit"
    r"|100 ?% (?:of )?(?:the )?(?:mfu|peak|utili[sz]ation)|(?:full|peak|max(?:imum)?) mfu"
    r"|mfu (?:of|=|at) (?:100 ?%|1(?:\.0)?\b)"
    r"|physical(?:ly)? (?:limit|possible)|best (?:possible|achievable|conceivable|case at all))\b",
    re.I,
)
_OF_THE_RUN = re.compile(
    r"\b(?:step\w*|time|mfu|speed|throughput|run|look\w*|be|do|get|reach\w*|limit|ceiling|tok\w*|far|here|this)\b", re.I
)
_OF_OTHERS = re.compile(r"\b(?:all-\w+|bandwidth|scal\w+|batch|roofline|world)\b", re.I)


def asks_ideal(question: Question) -> bool:
    """Whether it asks for the best that hardware and model allow."""
    text = question.text
    asked = _IDEAL.search(text) is not None and _OF_THE_RUN.search(text) is not None
    return asked and not _OF_OTHERS.search(text) and question.change.empty and not question.refs.written


def ideal(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The step at the peak of the chips, what was published, and the fastest proposal.

    Raises:
        InsufficientEvidenceError: the step or the MFU is not predicted.
    """
    answer.add(*least_step(conversation))
    if not answer.lines:
        raise InsufficientEvidenceError("the MFU of what runs now is not predicted", where=conversation.id)
    answer.complete = True
    fastest = min((one.prediction for one in conversation.proposals if one.prediction.step_time and one.prediction.mfu),
                  key=lambda one: one.step_time.value if one.step_time else 0.0, default=None)  # fmt: skip
    if fastest is not None and fastest.step_time is not None and fastest.mfu is not None:
        step, mfu = format_seconds(fastest.step_time.value), format_percent(fastest.mfu.value)
        answer.add(f"The fastest proposal, {fastest.plan}: {step}, MFU {mfu} (modelled).")
