"""``asap experiments``: the records behind the IDs."""

from dataclasses import replace as replace_fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.shared.options import Overrides, describes_run, experiments
from asap.cli.shared.output import Form, Plain, console, print_json, print_rows, print_table, warn

if TYPE_CHECKING:
    from asap.experiments.create import Statement

app = typer.Typer(no_args_is_help=True, help="Add, list, show and remove experiments.")

Id = Annotated[str, typer.Argument(help="The experiment's ID.", autocompletion=experiments)]


@app.command()
@describes_run
def add(
    id: Id,
    overrides: Overrides = None,
    *,
    stated: "Statement",
    config: Annotated[Path | None, typer.Option(help="A configuration, launch script, log or record.")] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="A run of a tracker: mlflow:RUN_ID, tensorboard:DIR.")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(help="A log directory, a run folder, an xplane.pb; also gs:// and s3://; or a GPU trace."),
    ] = None,
    plan: Annotated[str | None, typer.Option(help='The plan that ran: "data=8 model=4".')] = None,
    goodput: Annotated[float | None, typer.Option(min=0, max=1, help="Productive share of the wall time.")] = None,
    description: Annotated[str | None, typer.Option(help="What this run is.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite a record with this ID.")] = False,
) -> None:
    """Add an experiment."""
    from asap.experiments import ExperimentStore
    from asap.experiments.create import create_experiment

    store = ExperimentStore()
    store.check_id(id)
    if config is None and overrides and Path(overrides[0]).is_file():
        config, overrides = Path(overrides[0]), overrides[1:]
    said = replace_fields(stated, plan=plan, over_record=True, goodput=goodput, description=description)
    experiment = create_experiment(id, said, config=config, overrides=overrides or [], profile=profile, source=source)
    kept = store.add(experiment, replace=replace)
    for note in kept.notes:
        warn(note)
    if kept.measured is not None:
        print(f"measured step: {kept.measured}")
    print(f"added {kept.id}: `asap analyze {kept.id}`")


@app.command("list")
def list_experiments(format: Form = Plain.TERMINAL) -> None:
    """List all experiments, the bundled ones included."""
    from asap.experiments import ExperimentStore

    listing = ExperimentStore().list()
    rows = (
        (e.id, e.hardware.name or e.hardware.chip or "unknown", e.plan or "unknown", e.description or "")
        for e in listing.experiments
    )
    print_rows(format, list(listing.experiments), ("ID", "hardware", "plan", "description"), rows)
    for warning in listing.warnings:
        warn(warning)


@app.command()
@describes_run
def show(
    experiment: Annotated[
        str,
        typer.Argument(help="An experiment's ID, or a configuration, script or log.", autocompletion=experiments),
    ],
    *,
    stated: "Statement",
    every: Annotated[bool, typer.Option("--all", help="Each value and where it came from.")] = False,
    format: Form = Plain.TERMINAL,
) -> None:
    """Show a record on one screen. With --all, each value and where it came from."""
    from asap.experiments import ExperimentStore
    from asap.experiments.create import amend
    from asap.study.open_study import open_record

    record = open_record(experiment, ExperimentStore(), lambda known: amend(known, stated))
    if format is Plain.JSON:
        print_json(record)
    elif every:
        print_table(("field", "value", "from"), record.rows())
    else:
        from asap.reports.record import print_record

        print_record(record, console())


@app.command()
def remove(id: Id) -> None:
    """Forget an experiment."""
    from asap.experiments import ExperimentStore

    ExperimentStore().remove(id)
    print(f"removed {id}")
