"""A figure on record that does not count after all: "that 4.9 was with the profiler on, drop it"."""

import re

from asap.chat.evidence.fact import StatedFact
from asap.chat.understanding.question import Question

_DROPS = re.compile(
    r"\b(?:drop|ignore|scratch|scrap|forget|discard|remove|delete|disregard|toss|strike|withdraw)\s+(?:it|that|this|the\b)"
    r"|\b(?:does|did|do|should)(?:n'?t| not) (?:really )?count\b|\bdo(?:n'?t| not) (?:count|use) (?:it|that)\b"
    r"|\bthrow (?:it|that) (?:out|away)\b",
    re.I,
)


def discarded_by(question: Question, known: list[StatedFact]) -> tuple[StatedFact, ...]:
    """The facts whose figure a line repeats to take it back, and names no other figure in its place."""
    if not _DROPS.search(question.text):
        return ()
    said = [amount.value for amount in question.amounts if not amount.before]
    own = {fact: [value for value in (fact.value, fact.stated) if value is not None] for fact in known}
    found = [fact for fact, values in own.items() if any(abs(value - each) < 1e-9 for value in values for each in said)]
    return tuple(found) if len(said) == 1 else ()
