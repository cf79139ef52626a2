"""What a block of settings in a log says, by the table of its stack: under the names that all logs are read in."""

from collections.abc import Mapping
from typing import Any

from asap.core.errors import AsapError
from asap.experiments.settings.stack_settings import dotted
from asap.experiments.tables.reader import field_of
from asap.plans.degrees import degree
from asap.stacks.detection import claimant
from asap.stacks.reading import axis_degree

_AXES = {"tensor": "model", "pipeline": "stage", "context": "seq", "expert": "expert"}


def logged_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Lengths, batch, precision and degrees; empty where no table claims the settings, or they contradict it."""
    flat = dotted(values)
    try:
        table = claimant(flat, "log")
        if table is None:
            return {}
        said = table.with_defaults(flat)
        found = {"sequence": field_of(table, "sequence_length", said), "precision": field_of(table, "precision", said)}
        each = int(str(found["sequence"] or 1)) if table.batch.unit == "tokens" else 1
        whole = table.batch.whole.key(said) if table.batch.whole else ""
        found["global_batch"] = degree(said, whole) // each or None if said.get(whole) is not None else None
        found |= {name: axis_degree(table, said, axis) for name, axis in _AXES.items() if getattr(table.axes, axis)}
    except (AsapError, ValueError):
        return {}
    return {name: value for name, value in found.items() if value is not None}
