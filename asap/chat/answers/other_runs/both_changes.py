"""All that was supposed in the lines before, at once: "both?", "all together"."""

import re

from asap.chat.answers.other_runs.what_if import what_if
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question

_BOTH = re.compile(
    r"^\W*(?:(?:and|so|ok|then|what|if|with|how|about)\W+)*"
    r"(?:both|all(?: (?:of (?:it|that|them)|that|three))?|everything)"
    r"(?: (?:together|at once|combined|then|now))*\W*$",
    re.I,
)


def asks_both_changes(question: Question) -> bool:
    """Whether it asks for what was supposed before as a whole, and names nothing itself."""
    earlier = question.context.change
    return earlier is not None and not earlier.empty and _BOTH.match(question.text) is not None


def both_changes(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The run with all that was supposed; raises what :func:`what_if` raises."""
    if question.context.change is not None:
        answer.change = question.context.change
        what_if(conversation, answer, question.context.change, next(iter(question.context.plans), None))
