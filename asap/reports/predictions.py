"""Predictions of plans as a table, and in full where there are few."""

from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from asap.core.text import plain
from asap.core.units import format_bytes, format_percent, format_seconds, significant
from asap.prediction.prediction import Prediction
from asap.proposals.launch import why_not_launched
from asap.reports import phrases
from asap.study.study import Study

IN_FULL = 3
_DISTANCES: dict[str, Callable[[Prediction], float | None]] = {
    "outside region": lambda prediction: prediction.region_distance,
    "doublings": lambda prediction: prediction.doublings,
}


def print_predictions(
    study: Study, predictions: list[Prediction], console: Console, now: Prediction | None = None
) -> None:
    """One line per plan, below the one that runs if it is given; with at most three plans, their parts as well."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold cyan")
    distances = {name: read for name, read in _DISTANCES.items() if any(read(p) is not None for p in predictions)}
    for column in ("plan", "step time (90 % interval)", "tokens/s", "MFU", "HBM", "fits", *distances):
        table.add_column(column, overflow="fold")
    if now is not None:
        table.add_row(f"now: {now.plan}", *_cells(now)[1:], *(_number(read(now)) for read in distances.values()))
    for prediction in predictions:
        table.add_row(*_cells(prediction), *(_number(read(prediction)) for read in distances.values()))
    console.print(table)
    console.print(Text(f"axes: {phrases.axis_legend(prediction.plan for prediction in predictions)}", style="dim"))
    if len(predictions) <= IN_FULL:
        for prediction in predictions:
            _print_parts(prediction, console)
    notes = dict.fromkeys(
        (*study.warnings, *(note for p in predictions for note in p.notes), *_unsayable(study, predictions))
    )
    for note in notes:
        console.print(Text(f"! {plain(note)}", style="yellow"))


def _unsayable(study: Study, predictions: list[Prediction]) -> Iterator[str]:
    """Why the run's launcher has no words for a plan."""
    for prediction in predictions:
        reason = why_not_launched(study, prediction.plan)
        if reason is not None:
            yield f"{prediction.plan} cannot be launched as it stands: {reason}."


_FITS = {"fits": "yes", "may not fit": "maybe", "does not fit": "no"}


def _cells(prediction: Prediction) -> tuple[str, ...]:
    tokens, mfu, memory = prediction.tokens_per_second, prediction.mfu, prediction.memory
    time = phrases.interval(prediction.step_time) if prediction.step_time else phrases.relative_change(prediction)
    return (
        str(prediction.plan),
        time,
        significant(tokens.value) if tokens else "",
        format_percent(mfu.value) if mfu else "",
        phrases.memory_phrase(prediction),
        "" if memory is None else _FITS[memory.verdict],
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _print_parts(prediction: Prediction, console: Console) -> None:
    console.print(Text(str(prediction.plan), style="bold"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), header_style="dim")
    for column in ("part of the step", "axis", "runs for", "adds"):
        table.add_column(column)
    for part in prediction.parts:
        table.add_row(part.name, part.axis or "", format_seconds(part.busy_s), format_seconds(part.exposed_s))
    console.print(table)
    if prediction.memory is not None:
        parts = ", ".join(f"{part.name} {format_bytes(part.size_bytes)}" for part in prediction.memory.parts)
        console.print(Text(f"  HBM: {parts}"))
    if prediction.step_time is not None:
        source = f"{prediction.step_time.provenance.value}: {prediction.step_time.source}"
        console.print(Text(f"  {plain(source)}", style="dim"))
