"""Figures of a report as short plain phrases, before and after."""

from collections.abc import Callable

from asap.ci.report import ConfigurationReport, Expectation, Side
from asap.core.provenance import Quantity
from asap.core.units import PERCENT, format_bytes, format_percent, format_seconds, significant

UNKNOWN = "unknown"
_DESCRIPTIONS = ("plan", "batch", "model", "hardware")
_DIGITS = 3
Row = tuple[str, ...]


def facts_table(report: ConfigurationReport, currency: str) -> tuple[Row, list[Row]]:
    """Head and rows of everything that is known of the sides that can be read, but for what :func:`unchanged` tells."""
    sides = _readable(report)
    rows = [row for row in _descriptions(sides) if not _is_same(row)]
    for label, phrase in _phrases(currency):
        known = [side.expectation for side in sides.values()]
        rows.append((label, *(phrase(expectation) if expectation else UNKNOWN for expectation in known)))
    return ("", *sides), [row for row in rows if set(row[1:]) - {UNKNOWN}]


def unchanged(report: ConfigurationReport) -> str:
    """What describes both sides alike: ``model llama3.1-70b, 80 layers; hardware v5p-512``."""
    rows = _descriptions(_readable(report))
    return "; ".join(f"{row[0]} {row[1]}" for row in rows if _is_same(row) and row[1] != UNKNOWN)


def relative_phrase(quantity: Quantity | None) -> str:
    """``+24.0 % (-8 to +67 %)``."""
    if quantity is None:
        return UNKNOWN
    text = f"{(quantity.value - 1) * PERCENT:+.1f} %"
    if quantity.low is not None and quantity.high is not None:
        text += f" ({(quantity.low - 1) * PERCENT:+.0f} to {(quantity.high - 1) * PERCENT:+.0f} %)"
    return text


def memory_phrase(expectation: Expectation | None) -> str:
    """``30.2 GiB of 95 GiB``."""
    if expectation is None or expectation.hbm is None:
        return UNKNOWN
    capacity = f" of {format_bytes(expectation.hbm_capacity)}" if expectation.hbm_capacity else ""
    return format_bytes(expectation.hbm.value) + capacity


def interval(quantity: Quantity | None, write: Callable[[float], str]) -> str:
    """A figure with its 90 % interval."""
    if quantity is None:
        return UNKNOWN
    text = write(quantity.value)
    if quantity.low is not None and quantity.high is not None:
        text += f" ({write(quantity.low)} to {write(quantity.high)})"
    return text


def grouped(value: float) -> str:
    """Three significant digits: ``138071`` → ``138,000``."""
    rounded = float(f"{value:.{_DIGITS}g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 10**_DIGITS else significant(rounded, _DIGITS)


def _readable(report: ConfigurationReport) -> dict[str, Side]:
    sides = {"before": report.before, "after": report.after}
    return {name: side for name, side in sides.items() if side is not None and side.problem is None}


def _descriptions(sides: dict[str, Side]) -> list[Row]:
    return [(name, *(getattr(side, name) or UNKNOWN for side in sides.values())) for name in _DESCRIPTIONS]


def _is_same(row: Row) -> bool:
    return len(row) > 2 and len(set(row[1:])) == 1


def _phrases(currency: str) -> list[tuple[str, Callable[[Expectation], str]]]:
    return [
        ("step time", lambda e: interval(e.step_time, format_seconds)),
        ("tokens/s", lambda e: interval(e.tokens_per_second, grouped)),
        ("MFU", lambda e: interval(e.mfu, format_percent)),
        ("HBM a device", memory_phrase),
        ("chip-hours for 10⁹ tokens", lambda e: interval(e.chip_hours, grouped)),
        (f"{currency} a day", lambda e: interval(e.money_per_day, grouped)),
        (f"{currency} for 10⁹ tokens", lambda e: interval(e.money, grouped)),
    ]
