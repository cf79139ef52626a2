"""What opaque operations are said to be: "the custom calls are our splash attention"."""

import re

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import is_question
from asap.core.text import plain
from asap.diagnosis.diagnosis import Bottleneck

_NAMED = re.compile(
    r"\b(?:custom[- ]?calls?|opaque (?:stuff|ops?|operations?|calls?|kernels?|part|time|bit|ones?|share)|the opaque)\b"
    r"[^?]*?(?:\b(?:is|are|was|were|that'?s|those are|these are|they'?re|it'?s|come from|must be|just|being)|=|:)\s+"
    r"(?:(?:just|mostly|all|only|our|my|the|a|an|own)\s+)*(?P<what>[a-z][\w /+-]{2,40}?)\W*$",
    re.I,
)
_JUDGED = re.compile(
    r"^(?:not?\b|bad|good|ok|fine|high|low|normal|weird|odd|wrong|expected|too|so|very|huge|large)", re.I
)


def names_opaque(question: Question) -> bool:
    """Whether it says, and does not ask, what the operations are that the profile cannot place."""
    found = _NAMED.search(question.text)
    return found is not None and not is_question(question.text) and not _JUDGED.match(found["what"])


def opaque_named(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """That it changes no figure, and what would."""
    found = _NAMED.search(question.text)
    if found is None:
        return
    answer.complete = True
    what = plain(found["what"].strip(), 60)
    opaque = (one for one in conversation.study.diagnosis.findings if one.kind is Bottleneck.OPAQUE)
    statement = next(opaque, None)
    answer.add(
        f"So the opaque time is {what}. That places no FLOPs in it, so no figure changes and nothing is recorded."
    )
    if statement is not None:
        answer.add(statement.statement, *([f"Next: {statement.advice}."] if statement.advice else []))
