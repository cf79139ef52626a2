"""Facts in the notes of a session's worklog: those that were recorded, without those that were taken back."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

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
        event = note.get("event")
        if event not in (EVIDENCE, RETRACTION):
            continue
        fact = _fact(note.get("evidence" if event == EVIDENCE else "fact"))
        if fact is None:
            continue
        found = [one for one in found if one != fact and not (event == EVIDENCE and fact.supersedes(one))]
        found += [fact] if event == EVIDENCE else []
    return found


def _fact(value: Any) -> StatedFact | None:
    """A fact of the worklog; ``None`` where the record of it is damaged."""
    try:
        return StatedFact.model_validate(value)
    except ValidationError:
        return None
