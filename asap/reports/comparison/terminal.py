"""A comparison in the terminal."""

from collections import Counter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from asap.core.text import plain
from asap.core.units import format_change, format_percent, format_seconds
from asap.reports.comparison.comparison import KpiChange, RunComparison
from asap.reports.comparison.operations import OperationChange, OperationChanges
from asap.reports.phrases import amount, percent_change
from asap.reports.profile_facts import UNKNOWN, resource_name

_NAME, _SHAPE = 44, 28
_STYLES = {"faster": "green", "slower": "red", "new": "yellow", "gone": "cyan", "same": "dim"}


def print_comparison(found: RunComparison, console: Console, most: int) -> None:
    """Plans, KPIs, prediction and the operations that changed most."""
    console.print(Text(f"{plain(found.before)} → {plain(found.after)}", style="bold"))
    table = _table("", "before", "after", "change")
    table.add_row("plan", str(found.plan_before or UNKNOWN), str(found.plan_after or UNKNOWN), "")
    table.add_row("bottleneck", resource_name(found.bottleneck_before), resource_name(found.bottleneck_after), "")
    for kpi in found.kpis:
        table.add_row(kpi.name, _value(kpi, kpi.before), _value(kpi, kpi.after), _difference(kpi))
    console.print(table)
    if found.prediction is not None:
        console.print(Text(f"step time predicted {percent_change(found.prediction.predicted)}{_outcome(found)}"))
    for change in found.changes:
        console.print(Text(f"  · {plain(change)}"))
    if found.operations is not None:
        _print_operations(found.operations, console, most)
    for note in found.notes:
        console.print(Text(f"! {plain(note)}", style="yellow"))


def _print_operations(found: OperationChanges, console: Console, most: int) -> None:
    counts = Counter(change.change for change in found.operations)
    console.print(Text("operations: " + ", ".join(f"{counts[kind]} {kind}" for kind in _STYLES if counts[kind])))
    table = _table("", "difference", "before", "after", "operation", "shape")
    for change in [change for change in found.operations if change.change != "same"][:most]:
        table.add_row(
            Text(change.change, style=_STYLES[change.change]),
            _signed(change.difference, found.unit),
            _size(change.before, found.unit),
            _size(change.after, found.unit),
            Text(_name(change)),
            Text(plain(change.shape or "", _SHAPE)),
        )
    console.print(table)


def _unmeasured(found: RunComparison) -> list[str]:
    """The runs whose step was not measured."""
    steps = [(kpi.before, kpi.after) for kpi in found.kpis if kpi.name == "step time"] or [(None, None)]
    return [run for run, step in zip((found.before, found.after), steps[0], strict=True) if step is None]


def _outcome(found: RunComparison) -> str:
    prediction = found.prediction
    if prediction is None or prediction.measured is None:
        return f"; no measured step of {plain(', '.join(_unmeasured(found)))} to compare it with"
    where = {True: ", inside the interval", False: ", outside of the interval", None: ""}[prediction.inside]
    return f"; measured {format_change(prediction.measured)}{where}"


def _name(change: OperationChange) -> str:
    renamed = f" → {change.renamed}" if change.renamed else ""
    return plain(change.name + renamed, _NAME)


def _value(kpi: KpiChange, value: float | None) -> str:
    return UNKNOWN if value is None else amount(value, "s" if kpi.name == "step time" else "fraction")


def _difference(kpi: KpiChange) -> str:
    if kpi.before is None or kpi.after is None or not kpi.before:
        return ""
    if kpi.name == "step time":
        return format_change(kpi.after / kpi.before)
    return f"{(kpi.after - kpi.before) * 100:+.1f} points"


def _size(value: float | None, unit: str) -> str:
    return "" if value is None else format_seconds(value) if unit == "s" else format_percent(value, 2)


def _signed(value: float, unit: str) -> str:
    return ("+" if value > 0 else "") + _size(value, unit)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold cyan")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
