"""Whether anything is left to do: "so im done?", "is that all?", "anything else?"."""

import re

from asap.chat.answers.phrasing import line
from asap.chat.answers.proposals.testing.next_test import outcomes, what_to_test
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question

_BEFORE = r"^\W*(?:(?:ok(?:ay)?|so|and|then|well|right|cool|great|alright|fine|now)\W+)*"
_AFTER = r"(?:\s+(?:then|now|here|with (?:this|that|it)|for (?:now|today)))*\W*$"
_DONE = re.compile(
    rf"{_BEFORE}(?:(?:am i|are we|i'?m|i am|we'?re|we are) (?:all )?(?:done|finished|through|good(?: to go)?|set|ready)"
    r"|(?:is it|is (?:this|that)) (?:all )?(?:done|finished)"
    r"|(?:is )?(?:that|this)(?:'s| is)? (?:it|all|everything)"
    r"|(?:is there )?(?:anything|something|what) (?:else|left|more)"
    r"(?: (?:to (?:do|try|test|check)|i should (?:do|try|know)))?|(?:all )?done"
    rf"|(?:can|should) (?:i|we) (?:stop|ship it)){_AFTER}",
    re.I,
)


def asks_done(question: Question) -> bool:
    """Whether it asks no more than if something is left."""
    return _DONE.search(question.text) is not None


_LEFT = re.compile(
    rf"{_BEFORE}(?:what|which (?:ones?|plans?|proposals?))"
    rf"(?:'s| is| are)? (?:remains?|left|still (?:in|there|standing)){_AFTER}",
    re.I,
)


def asks_what_is_left(question: Question) -> bool:
    """Whether it asks which proposals are left."""
    return _LEFT.search(question.text) is not None


def done(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What is left: to run what was not run yet, else what is still worth a test."""
    answer.complete, current = True, conversation.proposals
    if outcomes(conversation) or not current:
        what_to_test(conversation, answer)
        return
    best = current[0]
    answer.focus = best.plan
    answer.add(
        "Not before one of them ran: what is proposed is predicted, and no result of a proposal is on record.",
        f"First: {line(conversation, best, 1)}.",
        'Then say what it came to, as in "proposal 1 measured 2.4 s" or "proposal 1 ran out of memory".',
    )
