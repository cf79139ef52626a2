"""A figure on record that does not count after all: "that 4.9 was with the profiler on, drop it"."""

import re

from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import is_question
from asap.evidence.fact import StatedFact

_DROPS = re.compile(
    r"\b(?:drop|ignore|scratch|scrap|forget|discard|remove|delete|disregard|toss|strike|withdraw)\s+(?:it|that|this|the\b)"
    r"|\b(?:does|did|do|should)(?:n'?t| not) (?:really )?count\b|\bdo(?:n'?t| not) (?:count|use) (?:it|that)\b"
    r"|\bthrow (?:it|that) (?:out|away)\b",
    re.I,
)
_AT_THE_END = re.compile(
    r"\b(?:drop|ignore|scratch|scrap|forget|discard|disregard|toss|strike|scrub|delete)"
    r"(?: (?:it|that|this|about (?:it|that)))?"
    r"(?:\W+(?:please|then|sorry|thanks|my bad))*\W*$",
    re.I,
)
_REASON = re.compile(
    r"\b(?:(?:that|this|it|those|which)(?: one)? (?:is|was|were|ran|had|came|used)|that'?s"
    r"|(?:wrong|other|old|different) \w+)\b",
    re.I,
)
"""Says what was the matter with it: "that was with the old image"."""


def discarded_at_once(question: Question, latest: tuple[StatedFact, ...]) -> bool:
    """Whether it takes back what the last line put on record, with a reason and without its figure.

    "nah that was on the old image, ignore"
    """
    told = _AT_THE_END.search(question.text) is not None and _REASON.search(question.text) is not None
    measured = any(amount.unit and amount.unit != "other" for amount in question.amounts)
    return bool(latest) and told and not measured and not is_question(question.text)


def discarded_by(question: Question, known: list[StatedFact]) -> tuple[StatedFact, ...]:
    """The facts whose figure a line repeats to take it back, and names no other figure in its place."""
    plans = set(question.refs.ranked) | set(question.refs.written)
    if plans and _AT_THE_END.search(question.text) and not any(amount.unit for amount in question.amounts):
        return tuple(fact for fact in known if fact.plan in plans)
    if not _DROPS.search(question.text):
        return ()
    said = [amount.value for amount in question.amounts if not amount.before]
    own = {fact: [value for value in (fact.value, fact.stated) if value is not None] for fact in known}
    found = [fact for fact, values in own.items() if any(abs(value - each) < 1e-9 for value in values for each in said)]
    return tuple(found) if len(said) == 1 else ()
