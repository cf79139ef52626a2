"""An answer as a language model reads it: rounded figures with their interval, tables that name their columns once, the
references of the figures, and text from files on one line."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from asap.core.text import fenced, plain
from asap.core.units import Quantity
from asap.reports.answers.blocks import cell
from asap.reports.phrases import written

LONGEST_NAME = 160
LONGEST_PASSAGE = 600
PASSAGES = {"text", "summary", "description", "hlo", "warnings"}
"""Fields that hold passages that others wrote; they are fenced."""


SUBJECT = "plan"
"""The section that a whole answer is about: its fields stand among those of the answer."""


def to_compact(answer: BaseModel) -> dict[str, Any]:
    """The known fields of an answer as plain JSON."""
    return _fields(answer)


def table(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows with their columns named once; a column in which no row has anything is left out."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    columns = [name for name in columns if any(row.get(name) not in (None, "") for row in rows)]
    return {"columns": columns, "rows": [[row.get(name) for name in columns] for row in rows]}


def unrolled(answer: Any) -> Any:
    """An answer with each table as a list of rows by name, which is how it is checked."""
    if isinstance(answer, Mapping):
        if set(answer) == {"columns", "rows"}:
            return [dict(zip(answer["columns"], row, strict=False)) for row in answer["rows"]]
        return {key: unrolled(item) for key, item in answer.items()}
    if isinstance(answer, list | tuple):
        return [unrolled(item) for item in answer]
    return answer


def without(answer: Any, names: Collection[str]) -> Any:
    """An answer without some of its fields, in its tables too."""
    if isinstance(answer, list):
        return [without(one, names) for one in answer]
    if not isinstance(answer, dict):
        return answer
    kept = {name: without(one, names) for name, one in answer.items() if name not in names}
    return table([without(row, names) for row in unrolled(kept)]) if set(kept) == {"columns", "rows"} else kept


def _fields(model: BaseModel) -> dict[str, Any]:
    found = {}
    for name in type(model).model_fields:
        value = getattr(model, name)
        if value is None or value == () or value == "":
            continue
        if name == SUBJECT and isinstance(value, BaseModel):
            found |= _fields(value)
        else:
            found[name] = _value(name, value)
    return found


def _value(name: str, value: Any) -> Any:
    if isinstance(value, Quantity):
        return written(value)
    if isinstance(value, BaseModel):
        return _fields(value)
    if isinstance(value, tuple) and isinstance(value[0], BaseModel):
        return table([_flat(one) for one in value])
    if isinstance(value, tuple):
        return [_value(name, one) for one in value]
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, str) and name in PASSAGES:
        return fenced(plain(value, LONGEST_PASSAGE), name)
    return plain(cell(value), LONGEST_PASSAGE)


def _flat(row: BaseModel) -> dict[str, Any]:
    """A row, with the columns of a nested one among its own."""
    found: dict[str, Any] = {}
    for name, value in _fields(row).items():
        found |= value if isinstance(value, dict) and "columns" not in value else {name: value}
    return found
