"""``asap resolve``: what a training log says, or what a launch script would start."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.shared.options import describes_run, duration_s
from asap.cli.shared.output import Form, Plain, print_json, print_table, warn
from asap.cli.shared.progress import progress

if TYPE_CHECKING:
    from asap.experiments.create import Statement
    from asap.experiments.logs.reading import LogReading

_ASK = (
    "{command}\nruns for real, by your own hand. Only these are replaced by stand-ins that write down how they are\n"
    "called, and start nothing: {programs}. One that is called by its full path runs."
)


@describes_run
def resolve(
    what: Annotated[
        list[str],
        typer.Argument(
            help="A training log, or settings that a run saved; or, behind --, the command that starts training.",
            metavar="LOG | -- COMMAND …",
        ),
    ],
    *,
    stated: "Statement",
    yes: Annotated[bool, typer.Option("--yes", help="Run the command without asking.")] = False,
    add: Annotated[str | None, typer.Option(help="Keep the record under this ID.", metavar="ID")] = None,
    time_limit: Annotated[str, typer.Option(help="Limit on the command: 90s, 30m.")] = "60s",
    format: Form = Plain.TERMINAL,
) -> None:
    """Show what a log settles, or what a script would start."""
    path = Path(what[0]).expanduser()
    if len(what) == 1 and (path.is_file() or path.suffix):
        _show(path, format, stated, add)
    else:
        _catch(what, yes, stated, add, duration_s(time_limit), format)


def _show(path: Path, format: Plain, stated: "Statement", add: str | None) -> None:
    from asap.core.numbers import as_setting
    from asap.experiments.logs.read import read_resolved
    from asap.experiments.logs.settings import settings_of

    with progress():
        reading = read_resolved(path)
    settings = settings_of(reading)
    if format is Plain.JSON:
        from asap.experiments.logs.reading import LogDocument

        print_json(LogDocument.of(reading, settings))
    else:
        rows = [("stack", reading.stack or "unknown", "")]
        said = settings.model_dump(exclude_none=True)
        rows += [(name, as_setting(value), "settings") for name, value in said.items()]
        known = reading.hardware.model_dump(exclude_none=True)
        rows += [(name, str(known[name]), "hardware") for name in ("chip", "named", "network") if name in known]
        rows += [(name, value, "measured") for name, value in _measured(reading)]
        if reading.lines:
            where = f"line {reading.ending.line_number}" if reading.ending.line else ""
            rows.append(("ended", str(reading.ending), where))
            rows += [("largest tensor", str(one), "XLA") for one in reading.ending.largest[:3]]
        print_table(("what", "value", "from"), rows)
        for note in reading.notes:
            warn(note)
    if add is not None:
        _keep(path, stated, add)


def _measured(reading: "LogReading") -> list[tuple[str, str]]:
    from asap.core.units import counted, format_bytes, format_percent, format_seconds, significant

    found, step = reading.measured, reading.measured.step
    rows = list[tuple[str, str]]()
    if step.median and step.least and step.most:
        spread = f"{format_seconds(step.least)} to {format_seconds(step.most)}, {counted(step.steps, 'steady step')}"
        rows.append(("step", f"{format_seconds(step.median)} ({spread})"))
    if step.slow:
        rows.append(("slow steps, left out", step.slowest))
    others = (
        ("tokens/s of a device", found.tokens_per_second_per_device, significant),
        ("TFLOP/s, as the program counts", found.tflops_per_device, significant),
        ("MFU, as the program counts it", found.mfu, format_percent),
        ("peak memory", found.peak_memory_bytes, format_bytes),
    )
    return rows + [(name, put(value)) for name, value, put in others if value]


def _keep(path: Path, stated: "Statement", id: str) -> None:
    from asap.experiments import ExperimentStore
    from asap.experiments.create import create_experiment

    store = ExperimentStore()
    store.check_id(id)
    store.add(create_experiment(id, stated, config=path))
    print(f"added {id}: `asap analyze {id}`")


def _catch(command: list[str], yes: bool, stated: "Statement", add: str | None, seconds: float, format: Plain) -> None:
    from asap.core.errors import UsageError
    from asap.core.text import plain
    from asap.experiments import ExperimentStore
    from asap.experiments.caught_command import STAND_INS, catch, check_may_run, record_of_calls

    check_may_run()
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("asks before it runs a command", where="asap resolve", hint="add --yes to run it")
        print(_ASK.format(command=plain(" ".join(command), 400), programs=", ".join(STAND_INS)), file=sys.stderr)
        typer.confirm("Run it?", abort=True, err=True)
    caught = catch(command, seconds)
    experiment, read = record_of_calls(caught, add or "resolved", stated)
    if format is Plain.JSON:
        print_json(experiment)
    else:
        from asap.cli.shared.output import console
        from asap.reports.record import print_record

        print(f"caught: {plain(str(read), 4000)}\n")
        print_record(experiment, console())
    for note in experiment.notes:
        warn(note)
    if add is not None:
        ExperimentStore().add(experiment)
        print(f"added {add}: `asap analyze {add}`")
