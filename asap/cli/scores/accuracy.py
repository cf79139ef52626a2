"""``asap accuracy``: predictions scored, narrowed by a team's own runs, and followed up."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.shared.options import experiments
from asap.cli.shared.output import Form, Plain, print_json, print_table, warn
from asap.cli.shared.progress import progress

if TYPE_CHECKING:
    from asap.calibration.own_runs import Reading
    from asap.ledger.ledger import Entry, SessionIdea


def backtest(
    runs: Annotated[list[Path], typer.Argument(help="Measured runs, one JSON object a line.")],
    models: Annotated[Path, typer.Option(help="Architectures, one JSON object a line.")],
    baseline: Annotated[bool, typer.Option("--baseline", help="Score constant MFU and roofline as well.")] = False,
    loop: Annotated[
        bool, typer.Option("--loop", help="Tune each group of four or more shardings, run by run.")
    ] = False,
    format: Form = Plain.TERMINAL,
) -> None:
    """Score predictions on published runs that no fit had seen."""
    from asap.calibration.backtest.backtest import backtest as score
    from asap.calibration.backtest.predicted_table import BASELINES
    from asap.calibration.backtest.tables import score_table, score_tables

    with progress() as show:
        show("predicting published runs")
        report = score(runs, models, loop=loop)
        baselines = {name: score(runs, models, baseline=name) for name in BASELINES} if baseline else {}
    if format is Plain.JSON:
        print_json(report.model_dump() | ({"baselines": baselines} if baselines else {}))
        return
    for title, scores in score_tables({"ours": report, **baselines}):
        if scores:
            print_table(*score_table(title, scores))
    if report.skipped:
        print_table(("skipped", "rows"), report.skipped.items())
    warn(report.method)


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
    format: Form = Plain.TERMINAL,
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
    print(f"{len(known.runs)} of your runs correct predictions. To remove them: `asap accuracy calibrate --forget`")


def _own_program(name: str, command: str | None, logs: list[Path], steps: int, yes: bool) -> "Reading":
    """The experiment's program with few layers: run here, or read from logs; without either, how to run it."""
    import sys

    from asap.calibration.own_program import OwnProgram, depths_of_logs, run_depths
    from asap.core.errors import UsageError
    from asap.core.text import plain
    from asap.core.units import significant
    from asap.experiments import ExperimentStore
    from asap.optimize.evaluators.run.evaluator import RunLimits
    from asap.proposals.test_worth import WARM_UP_STEPS
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
    hours = sum(program.predicted(*program.depths)) * (steps + WARM_UP_STEPS) * slice_.chips / 3600
    cost = f"{slice_.chips} x {slice_.chip.title}, about {significant(hours, 2)} chip-hours beside start-up"
    print(f"This runs {plain(command, 200)} with {depths} layers on {cost}.", file=sys.stderr)
    if not yes and not sys.stdin.isatty():
        raise UsageError("nobody is here to agree to the cost", where="--own", hint="--yes agrees to it")
    if not yes and not typer.confirm("Run it?", err=True):
        raise typer.Exit(1)
    with progress() as show:
        session = new_session_name()
        place = session_path(session).with_suffix(".tries")
        return program.reading(run_depths(program, command, place, session, RunLimits(steps), show))


def ledger(
    experiment: Annotated[
        str | None, typer.Argument(help="Only of this experiment.", autocompletion=experiments)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also predictions without an outcome.")] = False,
    format: Form = Plain.TERMINAL,
) -> None:
    """Score earlier predictions by what came of them. Shows prediction, interval, outcome, and the running share
    inside the interval."""
    from asap.experiments import ExperimentStore
    from asap.ledger.ledger import build_ledger, session_ideas
    from asap.sharding_memory.analyses import stored_analyses

    with progress() as show:
        show("reading the sessions")
        analyses = [a for a in stored_analyses() if experiment in (None, a.experiment.id)]
        found = build_ledger(analyses, ExperimentStore().list().experiments, session_ideas(experiment))
    if format is Plain.JSON:
        print_json(found)
        return
    waiting = sum(entry.outcome is None for entry in found.entries)
    known = [entry for entry in found.entries if every or entry.outcome is not None]
    if known:
        columns = ("session", "experiment", "plan", "predicted (90 % interval)", "outcome", "inside", "so far")
        print_table(columns, _rows(known))
    if found.ideas:
        print_table(("session", "experiment", "idea", "configuration", "step time", "verdict"), map(_idea, found.ideas))
    print(_summary(found.score.model_dump(), waiting))
    if found.ideas:
        counts = Counter(one.verdict for one in found.ideas)
        print(
            f"{len(found.ideas)} ideas tried: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}."
        )


def _idea(one: "SessionIdea") -> tuple[object, ...]:
    from asap.core.units import change_interval

    change = change_interval(one.ratio, one.low, one.high) if one.ratio else one.why
    return one.session, one.experiment, one.idea, one.configuration, change, one.verdict


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
    from asap.core.units import change_interval, format_seconds

    if entry.unit == "s":
        return f"{format_seconds(entry.predicted)} ({format_seconds(entry.low)} to {format_seconds(entry.high)})"
    return f"{change_interval(entry.predicted, entry.low, entry.high)} against now"


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
    said.append(f"{waiting} predictions without an outcome" + (": state it in `asap chat`" if waiting else ""))
    return "; ".join(said) + "."
