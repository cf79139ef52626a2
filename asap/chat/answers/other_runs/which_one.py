"""Which one it is to be, after all that was said: "so which one then", of the changed run that was spoken of."""

import re

from asap.chat.answers.other_runs.what_if import what_if
from asap.chat.answers.proposals.testing.next_test import what_to_test
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.changes import is_of_settings
from asap.chat.understanding.question import Question

_WHICH = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|so|and|but|then|well|right|alright|hm+)\W+)*"
    r"(?:which(?: (?:one|plan|proposal|of (?:them|these|those|the three)))?"
    r"(?: (?:is it|now|to (?:use|take|run|pick|choose)"
    r"|(?:should|do|would) (?:i|we|you) (?:use|take|run|pick|choose|go (?:for|with))))?"
    r"|what(?:'s| is) (?:your|the) (?:verdict|pick|choice|call))(?: (?:then|now|finally|in the end))*\W*$",
    re.I,
)


def asks_which_one(question: Question) -> bool:
    """Whether it asks for the choice, and names neither plans nor what is to count."""
    return _WHICH.search(question.text) is not None


def which_one(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The choice for the changed run that was spoken of last, unless facts came since; else which to test next."""
    change = question.context.change
    if conversation.latest or change is None or is_of_settings(change) or not change.counts:
        what_to_test(conversation, answer)
        return
    what_if(conversation, answer, change)
    answer.change = change
