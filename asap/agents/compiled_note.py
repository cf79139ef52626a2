"""The note in a worklog that plans were compiled before the agents saw them: by what choice, and with what verdicts."""

from collections.abc import Mapping, Sequence
from typing import Any

from asap.compiler.choice import Choice
from asap.sharding_memory import Kind, Record

_EVENT = "compiled"


def compiled_note(choice: Choice, verdicts: Mapping[str, str]) -> dict[str, Any]:
    """The payload; ``verdicts`` are by plan."""
    return {"event": _EVENT, "choice": choice.to_record(), "verdicts": dict(verdicts)}


def compiled_by(records: Sequence[Record]) -> Choice | None:
    """How plans were compiled last; ``None`` if none were."""
    notes = (r.payload for r in reversed(records) if r.kind is Kind.NOTE and r.payload.get("event") == _EVENT)
    note = next(notes, None)
    return None if note is None else Choice.from_record(note.get("choice", {}))
