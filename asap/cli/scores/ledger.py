"""``asap accuracy ledger``: predictions of earlier sessions, and what came of them."""

from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.shared.completion import experiments
from asap.cli.shared.output import Plain, print_json, print_table
from asap.cli.shared.progress import progress

if TYPE_CHECKING:
    from asap.ledger.entry import Entry


def ledger(
    experiment: Annotated[
        str | None, typer.Argument(help="Only of this experiment.", autocompletion=experiments)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also predictions without an outcome.")] = False,
    format: Annotated[Plain, typer.Option(help="Output format.")] = Plain.TERMINAL,
) -> None:
    """Score earlier predictions by what came of them. Shows prediction, interval, outcome, and the running share
    inside the interval."""
    from asap.experiments import ExperimentStore
    from asap.ledger.ledger import build_ledger
    from asap.sharding_memory.analyses import stored_analyses

    with progress() as show:
        show("reading the sessions")
        analyses = [a for a in stored_analyses() if experiment in (None, a.experiment.id)]
        found = build_ledger(analyses, ExperimentStore().list().experiments)
    if format is Plain.JSON:
        print_json(found)
        return
    waiting = sum(entry.outcome is None for entry in found.entries)
    known = [entry for entry in found.entries if every or entry.outcome is not None]
    if known:
        columns = ("session", "experiment", "plan", "predicted (90 % interval)", "outcome", "inside", "so far")
        print_table(columns, _rows(known))
    print(_summary(found.score.model_dump(), waiting))


def _rows(entries: "list[Entry]") -> "list[tuple[object, ...]]":
    rows, measured, inside = [], 0, 0
    for entry in entries:
        measured += entry.inside is not None
        inside += bool(entry.inside)
        verdict = {True: "yes", False: "no", None: ""}[entry.inside]
        running = f"{inside} of {measured}" if entry.inside is not None else ""
        rows.append((entry.session, entry.experiment, entry.plan, _predicted(entry), _outcome(entry), verdict, running))
    return rows


def _predicted(entry: "Entry") -> str:
    from asap.core.units import format_seconds

    if entry.unit == "s":
        return f"{format_seconds(entry.predicted)} ({format_seconds(entry.low)} to {format_seconds(entry.high)})"
    return f"{entry.predicted:.2f} ({entry.low:.2f} to {entry.high:.2f}) of now"


def _outcome(entry: "Entry") -> str:
    memory = "; the verdict on memory was wrong" if entry.right_about_memory is False else ""
    return (entry.outcome.words if entry.outcome else "") + memory


def _summary(score: dict[str, float | None], waiting: int) -> str:
    from asap.core.units import format_percent

    said = []
    if score["measured"]:
        error = format_percent(score["median_error"] or 0.0)
        said.append(
            f"{score['inside']} of {score['measured']} measurements inside the 90 % interval, median error {error}"
        )
    if score["memory_verdicts"]:
        said.append(f"{score['memory_right']} of {score['memory_verdicts']} verdicts on memory right")
    said.append(f"{waiting} predictions without an outcome" + (": state it in asap chat" if waiting else ""))
    return "; ".join(said) + "."
