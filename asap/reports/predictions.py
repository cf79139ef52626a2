"""Predictions of plans as a table, and in full where there are few."""

import re
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from asap.core.text import plain
from asap.core.units import format_bytes, format_odds, format_percent, format_seconds, significant
from asap.plans import Plan
from asap.prediction.prediction import MemoryPrediction, Prediction
from asap.proposals.launch import why_not_launched
from asap.proposals.selection.candidate import SURE_TO_FIT
from asap.reports import phrases
from asap.reports.phrases import written
from asap.study.start import is_start
from asap.study.study import Study

IN_FULL = 3
_NARROW = 120
"""Columns of a terminal below which figures are folded for the plan's sake."""
_FOLDED = {"step time (90 % interval)": 9, "HBM": 8}
_FIGURE = re.compile(r"\d[\d.]*")


def print_predictions(
    study: Study, predictions: list[Prediction], console: Console, now: Prediction | None = None
) -> None:
    """One line per plan, below the one that runs if it is given; with at most three plans, their parts as well."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold cyan")
    narrow = console.width < _NARROW
    for column in ("plan", "step time (90 % interval)", "tokens/s", "MFU", "HBM", "fits"):
        table.add_column(column, overflow="fold", max_width=_FOLDED.get(column) if narrow else None)
    if now is not None:
        named = "start" if is_start(study.experiment) else "now"
        table.add_row(f"{named}: {now.plan}", *_cells(now, None)[1:])
    for prediction in predictions:
        if now is None or prediction.plan != now.plan:
            table.add_row(*_cells(prediction, study.plan))
    console.print(table)
    if legend := phrases.axis_legend(prediction.plan for prediction in predictions):
        console.print(Text(f"axes: {legend}", style="dim"))
    if len(predictions) <= IN_FULL:
        for prediction in predictions:
            _print_parts(prediction, study.plan, console)
    notes = (*study.warnings, *(note for p in predictions for note in p.notes), *_unsayable(study, predictions))
    for note in _once(notes):
        console.print(Text(f"! {plain(note)}", style="yellow"))


def _once(notes: Iterable[str]) -> Iterable[str]:
    """Notes that differ in their figures alone once, as the first has it."""
    first: dict[str, str] = {}
    for note in notes:
        first.setdefault(_FIGURE.sub("", note), note)
    return first.values()


def _unsayable(study: Study, predictions: list[Prediction]) -> Iterator[str]:
    """Why the run's launcher has no words for some plans."""
    plans: dict[str, list[Plan]] = {}
    for prediction in predictions:
        if (reason := why_not_launched(study, prediction.plan)) is not None:
            plans.setdefault(reason, []).append(prediction.plan)
    for reason, found in plans.items():
        verb = "cannot be launched as it stands" if len(found) == 1 else "cannot be launched as they stand"
        yield f"{'; '.join(map(str, found))} {verb}: {reason}."


def _fits(memory: MemoryPrediction) -> str:
    """``fits``, or ``fits, 66 %`` where that is not sure."""
    odds, said = memory.probability_fits, memory.verdict
    return said if odds is None or odds >= SURE_TO_FIT or said == "does not fit" else f"{said}, {format_odds(odds)}"


def _cells(prediction: Prediction, now: Plan | None) -> tuple[str, ...]:
    tokens, mfu, memory = prediction.tokens_per_second, prediction.mfu, prediction.memory
    time = written(prediction.step_time) or phrases.percent_change(prediction.relative_step_time)
    return (
        prediction.plan.beside(now),
        time,
        significant(tokens.value) if tokens else "",
        format_percent(mfu.value) if mfu else "",
        phrases.memory_phrase(prediction),
        "" if memory is None else _fits(memory),
    )


def _print_parts(prediction: Prediction, now: Plan | None, console: Console) -> None:
    console.print(Text(prediction.plan.beside(now), style="bold"))
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
