"""Answers as a person would print them: rounded figures with their unit, and tables that name their columns once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from asap.core.provenance import Quantity
from asap.core.units import format_bytes, format_percent, format_rate, format_seconds, significant

DIGITS = 4
"""Significant digits of a bare number."""

_WRITERS: dict[str, Callable[[float], str]] = {
    "s": format_seconds,
    "bytes": format_bytes,
    "fraction": format_percent,
    "FLOP/s": lambda value: format_rate(value, "FLOP/s"),
    "bytes/s": lambda value: format_rate(value, "B/s"),
    "tokens/s": lambda value: f"{value:.0f} tokens/s",
}

PRINTED = {"step_time", "vs_now", "communication", "hbm", "tokens_per_second", "mfu", "share", "time", "figure", "rate"}
"""Fields that hold printed figures of the engine. What follows in brackets is the interval."""

VS_NOW = "vs_now"


def printed(quantity: Quantity | None) -> str | None:
    """``2.43 s (2.2 s to 2.71 s)``: a figure with its 90 % interval."""
    if quantity is None:
        return None
    write = _WRITERS.get(quantity.unit, significant)
    return _with_interval(quantity, write)


def change(ratio: Quantity | None) -> str | None:
    """A step time over that of what runs now, as a change: ``-16.9 % (-72.9 % to +155.0 %)``."""
    return None if ratio is None else _with_interval(ratio, lambda value: f"{(value - 1) * 100:+.1f} %")


def table(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows with their columns named once; a column in which no row has anything is left out."""
    columns = [name for name in dict.fromkeys(name for row in rows for name in row) if _holds(rows, name)]
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


def rounded(value: Any) -> Any:
    """Every float with as many digits as somebody would read."""
    if isinstance(value, float) and value == value and abs(value) != float("inf"):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value


def _with_interval(quantity: Quantity, write: Callable[[float], str]) -> str:
    text = write(quantity.value)
    if quantity.low is None or quantity.high is None or quantity.low == quantity.high:
        return text
    return f"{text} ({write(quantity.low)} to {write(quantity.high)})"


def _holds(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(row.get(name) not in (None, "") for row in rows)
