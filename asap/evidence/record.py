"""Facts in the notes of a session's worklog: those that were recorded, without those that were taken back."""

from collections.abc import Iterable, Mapping
from typing import Any

from asap.evidence.fact import StatedFact

EVIDENCE, RETRACTION = "evidence", "retraction"
"""Events of notes: a fact is recorded, a fact is taken back."""


def recorded_facts(notes: Iterable[Mapping[str, Any]]) -> list[StatedFact]:
    """The facts that hold after all notes, the oldest first; a later measurement takes the place of an earlier one.

    Args:
        notes: payloads of notes, in their order.
    """
    found: list[StatedFact] = []
    for note in notes:
        if note.get("event") == EVIDENCE:
            fact = StatedFact.model_validate(note["evidence"])
            found = [*(one for one in found if not fact.supersedes(one)), fact]
        elif note.get("event") == RETRACTION:
            taken = StatedFact.model_validate(note["fact"])
            found = [one for one in found if one != taken]
    return found
