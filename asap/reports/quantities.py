"""A quantity in words: the one rounding of all reports."""

import re
from collections.abc import Callable

from asap.answers.figure import CHANGE
from asap.core.provenance import Quantity
from asap.core.units import PERCENT, counted, format_bytes, format_percent, format_rate, format_seconds, significant

_FIGURE = r"[+-]?[<>]?\d[\d.,]*(?: [A-Za-z%µ][\w/%.-]*(?: [A-Za-z]+)?)?"
_PRINTED = re.compile(rf"^{_FIGURE}(?: \({_FIGURE} to {_FIGURE}\))?(?:, [a-z]+)?$")
_WRITERS: dict[str, Callable[[float], str]] = {
    "s": format_seconds,
    "bytes": format_bytes,
    "fraction": format_percent,
    CHANGE: lambda value: f"{value * PERCENT:+z.1f} %",
    "FLOP/s": lambda value: format_rate(value, "FLOP/s"),
    "FLOP": lambda value: format_rate(value, "FLOP"),
    "bytes/s": lambda value: format_rate(value, "B/s"),
    "tokens/s": lambda value: f"{value:,.0f} tokens/s",
    "steps": lambda value: counted(round(value), "step"),
    "parameters": lambda value: f"{significant(value / 1e9)} B",
    "1": significant,
}


def amount(value: float, unit: str) -> str:
    """A value with its unit, rounded: ``2.52 ms``, ``14.0 GiB``, ``-16.9 %``."""
    write = _WRITERS.get(unit)
    return write(value) if write else f"{significant(value)} {unit}"


def written(quantity: Quantity | None, *, brief: bool = False) -> str:
    """``2.43 s (2.2 s to 2.71 s)``: with its 90 % interval, where there is one; empty where it is unknown.

    Args:
        quantity: the figure.
        brief: the interval as people write it, its unit once: ``2.43 s (2.2 to 2.71)``.
    """
    if quantity is None:
        return ""
    text = amount(quantity.value, quantity.unit)
    if quantity.low is None or quantity.high is None or quantity.low == quantity.high:
        return text
    low, high = (amount(end, quantity.unit) for end in (quantity.low, quantity.high))
    units = {one.partition(" ")[2] for one in (text, low, high)}
    if brief and len(units) == 1:
        low, high = (end.partition(" ")[0] for end in (low, high))
    return f"{text} ({low} to {high})"


def is_written(text: str) -> bool:
    """Whether a text is nothing but a quantity as :func:`written` writes it."""
    return _PRINTED.match(text) is not None
