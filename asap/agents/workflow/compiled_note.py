"""The worklog note that plans were compiled before the agents saw them: with which options and verdicts."""

from collections.abc import Mapping, Sequence
from typing import Any

from asap.compiler.programs.options import CompileOptions
from asap.sharding_memory import Kind, Record

_EVENT = "compiled"


def compiled_note(options: CompileOptions, verdicts: Mapping[str, str]) -> dict[str, Any]:
    """The payload; ``verdicts`` are by plan."""
    return {"event": _EVENT, "choice": options.to_record(), "verdicts": dict(verdicts)}


def recorded_compile_options(records: Sequence[Record]) -> CompileOptions | None:
    """How plans were compiled last; ``None`` if none were."""
    notes = (r.fields for r in reversed(records) if r.kind is Kind.NOTE and r.fields.get("event") == _EVENT)
    note = next(notes, None)
    return None if note is None else CompileOptions.from_record(note.get("choice", {}))
