"""``asap history``: past optimizations, successful or not."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.shared.output import Form, Plain, print_json, print_rows
from asap.cli.shared.progress import progress

if TYPE_CHECKING:
    from asap.history import HistoryRecord

app = typer.Typer(no_args_is_help=True, help="Search, show and record past optimizations.")

COLUMNS = ("ID", "outcome", "speedup", "hardware", "before", "after")


@app.command()
def search(
    text: Annotated[str, typer.Argument(help="Description of the run or the change.")] = "",
    bottleneck: Annotated[str | None, typer.Option(help="compute, hbm, communication, host …")] = None,
    chip: Annotated[str | None, typer.Option(help="v5e, h100, …")] = None,
    devices: Annotated[int | None, typer.Option(min=1, help="Number of JAX devices of the job.")] = None,
    parameters: Annotated[float | None, typer.Option(min=1, help="Number of model parameters, such as 7e9.")] = None,
    plan: Annotated[str | None, typer.Option(help='Current plan, such as "data=8 model=4".')] = None,
    top: Annotated[int, typer.Option(min=1, max=100, help="Maximum number of records to print.")] = 5,
    format: Form = Plain.TERMINAL,
) -> None:
    """Find past optimizations of similar runs. Says in what they are similar."""
    from pydantic import ValidationError

    from asap.core.errors import UsageError
    from asap.history import HistoryQuery, parse_query, search_history
    from asap.plans import Plan

    said = {"bottleneck": bottleneck, "chip": chip, "devices": devices, "parameters": parameters, "text": text}
    try:
        query = HistoryQuery.model_validate(said | {"plan": Plan.parse(plan) if plan else None})
    except ValidationError as error:
        problem = error.errors()[0]
        raise UsageError(problem["msg"], where=f"--{problem['loc'][0]}") from error
    with progress() as stage:
        stage("searching the history, which is indexed on first use")
        hits = search_history(parse_query(query), top)
    document = [{"similarity": h.similarity, "why": h.why, "record": h.record} for h in hits]
    rows = ((h.similarity, *_cells(h.record), "; ".join(h.why)) for h in hits)
    print_rows(format, document, ("similar", *COLUMNS, "because"), rows)


@app.command()
def show(id: Annotated[str, typer.Argument(help="A record's ID.")], format: Form = Plain.TERMINAL) -> None:
    """Show one record."""
    from asap.core.text import plain
    from asap.core.units import format_percent
    from asap.history import get_record

    record = get_record(id)
    if format is Plain.JSON:
        print_json(record)
        return
    print(plain(record.title), plain(record.summary), sep="\n\n")
    confidence, source = format_percent(record.confidence, 0), record.source
    print(f"\nConfidence {confidence}. Source: {plain(source.text)} {plain(source.url or '')}")


@app.command("list")
def list_all(format: Form = Plain.TERMINAL) -> None:
    """List all records."""
    from asap.history import list_records

    records = list_records()
    print_rows(format, records, COLUMNS, map(_cells, records))


@app.command("import")
def import_file(file: Annotated[Path, typer.Argument(help="One record as JSON, or several as JSONL.")]) -> None:
    """Add all records of a file, or none; the same facts are added once."""
    from asap.history import import_records

    result = import_records(file)
    print(f"added {len(result.added)} records; {len(result.known)} were on record already")


@app.command()
def export(file: Annotated[Path, typer.Argument(help="File to write.")]) -> None:
    """Write all records as JSONL."""
    from asap.history import export_records

    print(f"wrote {export_records(file)} records to {file}")


@app.command()
def record(
    baseline: Annotated[str, typer.Argument(help="ID of the experiment before the change.")],
    result: Annotated[str, typer.Argument(help="ID of the experiment after the change.")],
    out_of_memory: Annotated[bool, typer.Option("--out-of-memory", help="The result ran out of memory.")] = False,
    summary: Annotated[str | None, typer.Option(help="What was done; by default written from the facts.")] = None,
) -> None:
    """Record the change between two experiments."""
    from asap.experiments import ExperimentStore
    from asap.history import add, record_from_experiments
    from asap.study.open_study import open_study

    store = ExperimentStore()
    before, after = open_study(baseline, store), open_study(result, store)
    made = record_from_experiments(
        before.experiment,
        after.experiment,
        before.profile.kpis.step_time_s if before.profile else None,
        None if out_of_memory or after.profile is None else after.profile.kpis.step_time_s,
        bottleneck=before.diagnosis.bottleneck if before.profile else None,
        bound=before.profile.roofline.program_bound if before.profile else None,
        summary=summary,
    )
    add(made)
    print(f"recorded {made.id}: {made.outcome.value.replace('_', ' ')}")


def _cells(record: "HistoryRecord") -> tuple[str | float, ...]:
    hardware = record.hardware
    return (
        record.id,
        record.outcome.value.replace("_", " "),
        record.speedup or "",
        f"{hardware.name or hardware.chip or 'unknown'} ({hardware.devices or '?'})",
        str(record.before or "unknown"),
        str(record.after or "unknown"),
    )
