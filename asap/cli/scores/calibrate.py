"""``asap accuracy calibrate``: predictions narrowed by a team's own measured runs."""

from pathlib import Path
from typing import Annotated

import typer

from asap.cli.shared.output import Plain, print_json, print_table, warn
from asap.cli.shared.progress import progress


def calibrate(
    runs: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            help="Measured runs: a session, history (your records), or rows of asap accuracy backtest.",
        ),
    ] = None,
    models: Annotated[Path | None, typer.Option(help="Architectures of the rows, one JSON object a line.")] = None,
    forget: Annotated[bool, typer.Option("--forget", help="Remove all of your runs.")] = False,
    format: Annotated[Plain, typer.Option(help="Output format.")] = Plain.TERMINAL,
) -> None:
    """Narrow predictions by your own measured runs. Without options, show the runs that do."""
    from asap.core.errors import NotFoundError, UsageError
    from asap.core.units import counted, format_percent, format_seconds
    from asap.prediction.uncertainty.own_runs import forget_own_runs, load_own_runs

    if forget and runs:
        raise UsageError("either adds runs or removes them", where="--forget", hint="give --with in a second call")
    if forget:
        print("Your runs were removed." if forget_own_runs() else "There were no runs to remove.")
        return
    if runs:
        from asap.calibration.own_runs import add_own_runs, read_measured

        with progress() as show:
            show("predicting your runs")
            readings = [read_measured(origin, models) for origin in runs]
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
    print(f"{len(known.runs)} of your runs correct predictions. To remove them: asap accuracy calibrate --forget")
