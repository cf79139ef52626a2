"""Chips that the run is said to have, and the record has not: "we're on 2 slices, actually"."""

import re

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import is_question

_STATES = re.compile(
    r"^\W*(?:(?:fyi|btw|actually|no|nope|well|oh|and|but|so|ok|sorry|wait|note|correction)\b\W*)*"
    r"(?:(?:we|i|they|it|this|that)|(?:our|the|my|this) (?:run|job|pod|cluster|slice|machine|setup|training|hardware))"
    r"(?:'re|'s|\s+(?:are|is|was|were|am|runs?|have|has|had|use[sd]?|train\w*|got))\b(?!\s+(?:get|giv|go|thinking|consider|plan"
    r"|looking)\w*)",
    re.I,
)
_SUPPOSED = re.compile(
    r"\b(?:if|would|could|should|might|may|will|can|want|like to|maybe|instead|what|how|which)\b", re.I
)


def states_hardware(question: Question) -> bool:
    """Whether it says what the run is on, asks nothing, and the record has other chips."""
    change = question.change
    left = change.model_copy(
        update={"hardware": None, "counts": tuple(one for one in change.counts if one[0] not in {"chips", "slices"})}
    )
    stated = not change.empty and left.empty and _STATES.search(question.text) is not None
    return stated and not is_question(question.text) and not _SUPPOSED.search(question.text)


def stated_hardware(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What is on record, and how the run is analysed on other chips."""
    hardware = conversation.study.slice
    answer.complete = True
    known = (
        f"{hardware.devices} chips of {hardware.chip.title} in {hardware.slices} slice(s)" if hardware else "no chips"
    )
    slices, chips = question.change.get("slices"), question.change.get("chips")
    option = f" --slices {round(slices.value)}" if slices is not None and not slices.factor else ""
    name = question.change.hardware or "NAME"
    example = f"{round(slices.value)} slices" if option and slices else f"{round(chips.value)} chips" if chips else name
    answer.add(
        f"Not recorded: the analysis is of {known}, and a word here cannot change its chips.",
        f"Analyse it as it runs: asap analyze CONFIG --hardware {name}{option}.",
        f'What that would be like is answered here: "what if {example}"'
        + (", of slices like the one on record." if option else "."),
    )
