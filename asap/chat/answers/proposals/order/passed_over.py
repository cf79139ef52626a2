"""The other proposals, where one is not wanted and no reason is given: "skip 1", or where others are: "others?"."""

import re
from collections.abc import Sequence

from asap.chat.answers.phrasing import line
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.plans import Plan

_PASSES = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|no|nah|well|hm+|so|but|please|let'?s)\W+)*(?:skip|not|leave out|anything but"
    r"|everything but|drop|exclude)\s+"
    r"(?:the\s+)?(?:proposal|option|number|plan)?\s*(?:#?\d|first|second|third)(?:\s+one)?(?:\W+(?:please|then))*\W*$",
    re.I,
)
_DROPPED = re.compile(
    r"\b(?:skip|drop|exclude|scrap|ditch|scratch|forget(?: about)?|leave out|lose|kill)\s+"
    r"(?:proposal|option|number|plan)?\s*#?(?P<rank>[1-3])(?=\W*$|\s*[,;]|\.\s|\s+(?:and|then|please|because|since|as)\b)",
    re.I,
)
"""Names a proposal that is not wanted beside what else is said: "drop 3, and no cp"."""
_OTHERS = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|and|so|well|hm+|any|got|the|what about|no)\W+)*(?:others?|alternatives?|what else"
    r"|anything else|the rest|other (?:ones?|options?|ideas?))\W*$",
    re.I,
)


def asks_others(question: Question) -> bool:
    """Whether it asks for other proposals and names none: "others?"."""
    return _OTHERS.match(question.text) is not None


def passed_over(question: Question) -> Plan | None:
    """The one proposal that is not wanted: "skip 1"."""
    named = question.refs.ranked
    return named[0] if len(named) == 1 and _PASSES.match(question.text) else None


def still_listed(conversation: Conversation, before: Sequence[Plan], text: str) -> list[str]:
    """What became of a proposal that a line drops beside what it states; ``before`` is the order until then."""
    ranks = {int(found["rank"]) for found in _DROPPED.finditer(text)}
    unwanted = [(rank, plan) for rank, plan in enumerate(before, 1) if rank in ranks]
    if not unwanted:
        return []
    stays = "stays on the list: nothing that was stated rules it out, and a wish is no fact"
    said = [
        f"{plan}, proposal {rank} before, {stays if plan in conversation.order else 'is off the list'}."
        for rank, plan in unwanted
    ]
    left = [one.plan for one in conversation.proposals if one.plan not in [plan for _, plan in unwanted]]
    ranks = [f"proposal {conversation.order.index(plan) + 1}, {plan}" for plan in left]
    return [*said, f"Without it: {'; '.join(ranks)}." if ranks else "Without it no other plan is proposed."]


def others_than(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What comes first beside it; nobody has measured it, so it stays on the list."""
    unwanted = passed_over(question)
    left = [one for one in conversation.proposals if one.plan != unwanted]
    answer.complete = True
    answer.add(f"Without {unwanted}:" if left else "No other plan is proposed.")
    answer.add(*(line(conversation, one, conversation.order.index(one.plan) + 1) for one in left))
    answer.focus = left[0].plan if left else None
    answer.add(
        "A wish is no fact, so nothing is recorded. If something rules it out, state that: it failed, ran out of"
        ' memory, or a limit, as in "tp must be at least 4".'
    )
