"""Figures of a report as rows of a table, before and after."""

from collections.abc import Callable

from asap.ci.report import ConfigurationReport, PredictionSummary, Side
from asap.core.units import format_bytes, format_percent, significant
from asap.reports.phrases import UNKNOWN, interval

_DESCRIPTIONS = ("plan", "batch", "model", "hardware")
_DIGITS = 3
Row = tuple[str, ...]


def facts_table(report: ConfigurationReport, currency: str) -> tuple[Row, list[Row]]:
    """Head and rows of what is known of each readable side, without what :func:`unchanged` lists."""
    sides = _readable(report)
    rows = [row for row in _descriptions(sides) if not _is_same(row)]
    for label, phrase in _phrases(currency):
        predictions = [side.prediction for side in sides.values()]
        rows.append((label, *(phrase(prediction) if prediction else UNKNOWN for prediction in predictions)))
    return ("", *sides), [row for row in rows if set(row[1:]) - {UNKNOWN}]


def unchanged(report: ConfigurationReport) -> str:
    """What both sides have in common: ``model llama3.1-70b, 80 layers; hardware v5p-512``."""
    rows = _descriptions(_readable(report))
    return "; ".join(f"{row[0]} {row[1]}" for row in rows if _is_same(row) and row[1] != UNKNOWN)


def hbm_use(prediction: PredictionSummary | None) -> str:
    """``30.2 GiB of 95 GiB``."""
    if prediction is None or prediction.hbm is None:
        return UNKNOWN
    capacity = f" of {format_bytes(prediction.hbm_capacity)}" if prediction.hbm_capacity else ""
    return format_bytes(prediction.hbm.value) + capacity


def thousands(value: float) -> str:
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


def _phrases(currency: str) -> list[tuple[str, Callable[[PredictionSummary], str]]]:
    return [
        ("step time", lambda p: interval(p.step_time)),
        ("tokens/s", lambda p: interval(p.tokens_per_second, thousands)),
        ("MFU", lambda p: interval(p.mfu, format_percent)),
        ("HBM per device", hbm_use),
        ("chip-hours per 10⁹ tokens", lambda p: interval(p.chip_hours, thousands)),
        (f"{currency} per day", lambda p: interval(p.money_per_day, thousands)),
        (f"{currency} per 10⁹ tokens", lambda p: interval(p.money, thousands)),
    ]
