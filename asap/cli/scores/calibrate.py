"""``asap accuracy calibrate``: predictions narrowed by a team's own measured runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.shared.completion import experiments
from asap.cli.shared.output import Plain, print_json, print_table, warn
from asap.cli.shared.progress import progress

if TYPE_CHECKING:
    from asap.calibration.own_runs import Reading


def calibrate(
    runs: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            help="Measured runs: a session, history (your records), or rows of asap accuracy backtest.",
        ),
    ] = None,
    own: Annotated[
        str | None,
        typer.Option(
            "--own",
            help="Measure this experiment's program with few layers. Alone, print the script to do it.",
            autocompletion=experiments,
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(help="For --own: what starts the program, './train.sh {overrides}'; {layers} is their number."),
    ] = None,
    logs: Annotated[
        list[Path] | None, typer.Option("--log", help="For --own: the log of a run with few layers; two of them.")
    ] = None,
    steps: Annotated[int, typer.Option(min=3, help="For --own: steps to measure after the warm-up.")] = 20,
    yes: Annotated[bool, typer.Option("--yes", help="Run without asking.")] = False,
    models: Annotated[Path | None, typer.Option(help="Architectures of the rows, one JSON object a line.")] = None,
    forget: Annotated[bool, typer.Option("--forget", help="Remove all of your runs.")] = False,
    format: Annotated[Plain, typer.Option(help="Output format.")] = Plain.TERMINAL,
) -> None:
    """Narrow predictions by your own measured runs. Without options, show the runs that do."""
    if own is None and (command or logs):
        raise typer.BadParameter("--command and --log are for --own EXPERIMENT")
    from asap.core.errors import NotFoundError, UsageError
    from asap.core.units import counted, format_percent, format_seconds
    from asap.prediction.uncertainty.own_runs import forget_own_runs, load_own_runs

    if forget and (runs or own):
        raise UsageError("either adds runs or removes them", where="--forget", hint="give --with in a second call")
    if forget:
        print("Your runs were removed." if forget_own_runs() else "There were no runs to remove.")
        return
    if runs or own:
        from asap.calibration.own_runs import add_own_runs, read_measured

        readings = [_own_program(own, command, logs or [], steps, yes)] if own else []
        with progress() as show:
            show("predicting your runs")
            readings += [read_measured(origin, models) for origin in runs or ()]
            add_own_runs(readings)
        for reading in readings:
            for reason, count in reading.skipped.items():
                warn(f"{reading.origin}: {counted(count, 'run')} left out: {reason}")
    known = load_own_runs()
    if known is None:
        raise NotFoundError(
            "no measured runs are kept", where="asap accuracy calibrate", hint="add some: --with SESSION"
        )
    if format is Plain.JSON:
        print_json(known)
        return
    rows = [
        (run.id, run.stack, format_seconds(run.step_time_s), format_seconds(run.predicted_s),
         f"{format_percent(run.step_time_s / run.predicted_s - 1)}", run.origin)
        for run in known.runs
    ]  # fmt: skip
    print_table(("run", "chip and stack", "measured", "predicted without them", "apart", "from"), rows)
    for run in known.runs:
        if run.how:
            print(f"{run.id}: {run.how}")
    print(f"{len(known.runs)} of your runs correct predictions. To remove them: asap accuracy calibrate --forget")


def _own_program(name: str, command: str | None, logs: list[Path], steps: int, yes: bool) -> "Reading":
    """The experiment's program with few layers: run here, or read from logs; without either, how to run it."""
    import sys

    from asap.calibration.own_program import OwnProgram, depths_of_logs, run_depths
    from asap.core.errors import UsageError
    from asap.core.text import plain
    from asap.experiments import ExperimentStore
    from asap.optimize.evaluators.run.evaluator import RunLimits
    from asap.sharding_memory import new_session_name
    from asap.sharding_memory.worklog import session_path
    from asap.study.open_study import open_study

    study = open_study(name, ExperimentStore())
    program = OwnProgram.of(study)
    if logs:
        return program.reading(depths_of_logs(program, logs, study.experiment))
    if command is None:
        print(program.script("./train.sh {overrides}"))
        for way in program.starts():
            print(f"# {way}")
        raise typer.Exit(0)
    depths, slice_ = " and ".join(map(str, program.depths)), program.run.hardware
    print(
        f"This runs {plain(command, 200)} with {depths} layers on {slice_.chips} x {slice_.chip.title}.",
        file=sys.stderr,
    )
    if not yes and not sys.stdin.isatty():
        raise UsageError("nobody is here to agree to the cost", where="--own", hint="--yes agrees to it")
    if not yes and not typer.confirm("Run it?", err=True):
        raise typer.Exit(1)
    with progress() as show:
        session = new_session_name()
        place = session_path(session).with_suffix(".tries")
        return program.reading(run_depths(program, command, place, session, RunLimits(steps), show))
