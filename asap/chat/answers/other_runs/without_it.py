""" "Without it?" alone: without the limit of the last line, without what was supposed, or asked back."""

import re

from asap.chat.answers.other_runs.back_to_run import back_to_run
from asap.chat.answers.proposals.limit_cost import limit_cost, limits_asked
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question

_WITHOUT = re.compile(
    r"^\W*(?:(?:and|so|but|ok|what|how|about|if|would|is|does|it|be|look|then)\W+)*without (?:that|this|it)"
    r"(?: (?:limit|constraint|rule|one))?\W*$",
    re.I,
)


def asks_without_it(question: Question) -> bool:
    """Whether it asks how it would be without something that only the lines before name."""
    return _WITHOUT.match(question.text) is not None


def without_it(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What the last limit costs; the run as it is, where something was supposed; else the question what is meant."""
    changed = question.context.change
    if limits_asked(conversation, question):
        limit_cost(conversation, answer, question)
    elif changed is not None and not changed.empty:
        back_to_run(conversation, answer, question)
    else:
        answer.complete = True
        answer.add('Without what? Name it, as in "without offloading", "1 without cp" or "without the limit on tp".')
