"""An interval of a proposal that is quoted: "2 says -68 to +204, is that a joke": where its width comes from."""

import re

from asap.chat.answers.proposals.order import ranking
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.proposals.selection.candidate import Candidate

_INTERVAL = re.compile(
    r"([-−+]?\d{1,3})(?:\.\d+)?\s*%?\s*(?:to|\.\.+|/|,|and|-)\s*\+?(-?\d{1,3})(?:\.\d+)?(?![\d.]*\w)"
)


def quoted_interval(conversation: Conversation, question: Question) -> Candidate | None:
    """The proposal whose interval against now is quoted."""
    quoted = {(abs(int(low.replace("−", "-"))), abs(int(high))) for low, high in _INTERVAL.findall(question.text)}
    for candidate in conversation.proposals if quoted else ():
        ratio = candidate.prediction.relative_step_time
        if ratio is None or ratio.low is None or ratio.high is None:
            continue
        if (abs(round((ratio.low - 1) * 100)), abs(round((ratio.high - 1) * 100))) in quoted:
            return candidate
    return None


def wide_interval(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What the interval is based on."""
    if (candidate := quoted_interval(conversation, question)) is not None:
        ranking.sure(conversation, answer, [candidate.plan])
