"""The most chips that may be used: "no more than 2 nodes", "max 128 chips": the run on so many."""

import re

from asap.chat.answers.other_runs.what_if import what_if
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.amounts import Amount
from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.quantities.things import To
from asap.chat.understanding.question import Question
from asap.hardware import Chip
from asap.hardware.nodes import chips_per_node

_BEFORE = re.compile(
    r"(?:\b(?:no|not|never) (?:more|bigger|larger) than|\bat (?:the )?most|\bmax(?:imum)?(?: of)?|\bup to|\bcapped? at"
    r"|\blimit(?:ed)? (?:to|is|of)|\b(?:can ?not|can't|won't|don't) (?:\w+ ){0,2}?(?:exceed|more than|go over|go above)"
    r"|\bunder|\bonly (?:have|got|get))\s+(?:the\s+)?$",
    re.I,
)
_BEHIND = re.compile(
    r"[\w -]{0,12}?\s*(?:max(?:imum)?|at most|tops|or (?:less|fewer)|is (?:the|our) (?:limit|max\w*))\b", re.I
)
"""What says that a count is the largest one, right before or behind it."""
_LONGEST = 9
"""Words of a line that names no more than the limit."""


def limits_chips(question: Question) -> bool:
    """Whether it says no more than how many chips there may be."""
    short = len(question.text.split()) <= _LONGEST and question.change.of_nothing_but_chips
    named = question.refs.plans or question.refs.wish
    if not short or named or len(counts := _counts(question)) != 1:
        return False
    before, behind = question.text[: counts[0].start], question.text[counts[0].end :]
    return _BEFORE.search(before) is not None or _BEHIND.match(behind) is not None


def chips_limit(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """That the run keeps within it, or the run on as many chips."""
    hardware = conversation.study.slice
    most = _chips(_counts(question)[0], hardware.chip if hardware else None)
    if most is None:
        answer.add("How many chips a node has is not on record: say the limit in chips.")
        return
    if hardware is not None and most >= hardware.devices:
        answer.complete = True
        answer.add(f"Every plan here is for the {hardware.devices} chips of the run, which is within that.")
        return
    answer.change = Change(counts=(("chips", To(value=float(most))),))
    what_if(conversation, answer, answer.change)
    answer.add("Nothing is recorded: the run on record keeps its chips.")


def _counts(question: Question) -> list[Amount]:
    return [amount for amount in question.amounts if amount.unit in {"chips", "nodes"} and amount.value >= 1]


def _chips(amount: Amount, chip: Chip | None) -> int | None:
    """A count in chips; ``None`` where the size of a node is not known."""
    if amount.unit == "chips":
        return int(amount.value)
    each = chips_per_node(chip) if chip is not None else None
    return int(amount.value) * each if each else None
