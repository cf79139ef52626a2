"""``asap trace``: the execution graph of a traced run, its replay and what-if on it."""

import re
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.shared.output import Plain, print_json, print_table, warn
from asap.cli.shared.progress import progress
from asap.traces.what_if.change import GRAMMAR, SETTINGS

if TYPE_CHECKING:
    from asap.traces.analysis.report import Quality, ReplayReport, WhatIfReport
    from asap.traces.graph.graph import Graph

app = typer.Typer(no_args_is_help=True, help="Replay the trace of a run, and ask what a change would bring.")

Paths = Annotated[
    list[str],
    typer.Argument(help="Kineto *.json[.gz], *.xplane.pb or nsys-jax thunk tables, or a folder: all ranks of one run."),
]
Path = Annotated[str, typer.Argument(help="One trace, or a folder with all ranks of one run.")]
Form = Annotated[Plain, typer.Option("--format", help="How to print.")]


_CHANGES = re.sub("\n{2,}", "\n", f"{GRAMMAR}\nWith --experiment also\n{SETTINGS}")


@app.command()
def load(paths: Paths, form: Form = Plain.TERMINAL) -> None:
    """What a trace holds: ranks, steps, streams, clocks, what is missing, and how much of it can be explained."""
    from asap.core.units import format_percent, format_seconds
    from asap.traces.summary import describe

    report = describe(_graph(paths))
    if form is Plain.JSON:
        print_json(report)
        return
    columns = (
        "rank",
        "device",
        "steps",
        "threads",
        "streams",
        "calls",
        "operations",
        "collectives",
        "span",
        "unexplained",
    )
    print_table(
        columns,
        (
            (
                rank.rank if rank.world_size is None else f"{rank.rank} of {rank.world_size}",
                rank.device or "unknown",
                len(rank.steps),
                rank.threads,
                len(rank.streams),
                rank.calls,
                rank.operations,
                rank.collectives,
                format_seconds(rank.device_span_s),
                format_percent(rank.unexplained),
            )
            for rank in report.ranks
        ),
    )
    if report.clock_spread_s is not None:
        print(f"clocks agree within {format_seconds(report.clock_spread_s)}")
    _say(report.quality, report.notes)


@app.command()
def replay(
    paths: Paths,
    timeline: Annotated[str | None, typer.Option(help="Write measured beside replayed as a Perfetto trace.")] = None,
    form: Form = Plain.TERMINAL,
) -> None:
    """Step time against measured, where the time of each rank goes, stragglers, and the critical path."""
    from asap.traces.summary import report_replay

    graph = _graph(paths)
    report = report_replay(graph)
    if timeline is not None:
        from pathlib import Path

        from asap.traces.perfetto import write_timeline

        write_timeline(graph, Path(timeline))
    if form is Plain.JSON:
        print_json(report)
        return
    _print_replay(report)
    _say(report.quality, report.notes)


@app.command("what-if", help=f"Predict the step time of a changed run.\n\n\b\n{_CHANGES}")
def what_if_command(
    path: Path,
    changes: Annotated[list[str], typer.Argument(metavar="CHANGE...", help="One or several, made together.")],
    experiment: Annotated[
        str | None, typer.Option(help="What was traced: an experiment with its model, batch, hardware and plan.")
    ] = None,
    plan: Annotated[str | None, typer.Option(help="The plan that was traced, if it is not the experiment's.")] = None,
    form: Form = Plain.TERMINAL,
) -> None:
    """Predict the step time of a changed run."""
    from asap.core.units import format_percent, format_seconds

    report = _what_if(path, changes, experiment, plan)
    if form is Plain.JSON:
        print_json(report)
        return
    found, shares = report.step_time_s, report.shares
    rows = (
        ("measured", format_seconds(report.measured_s)),
        ("after " + ", ".join(report.changes), format_seconds(found.value)),
        ("interval", f"{format_seconds(found.low)} to {format_seconds(found.high)}"),
        ("speed-up", f"{report.speedup:.2f}x"),
        ("as traced", format_percent(shares.traced)),
        ("traced, then scaled", format_percent(shares.scaled)),
        ("modelled", format_percent(shares.modelled)),
    )
    print_table(("step time", "value"), rows)
    _say(report.quality, report.notes)


def _what_if(path: str, changes: list[str], experiment: str | None, plan: str | None) -> "WhatIfReport":
    from asap.experiments import ExperimentStore
    from asap.prediction.from_trace.predict import what_if
    from asap.study.study import open_study, read_plan
    from asap.traces.summary import what_if_report
    from asap.traces.what_if.change import parse_change

    if experiment is None:
        for change in changes:
            parse_change(change)
    study = open_study(experiment, ExperimentStore()) if experiment is not None else None
    traced = read_plan(study, plan) if study is not None and plan else None
    graph = _graph([path])
    return what_if_report(graph, changes, what_if(graph, changes, study, traced))


def _graph(paths: list[str]) -> "Graph":
    from asap.traces.graph.build import build_graph
    from asap.traces.load import load_trace

    with progress() as show:
        trace = load_trace(paths, show)
        show("building the graph")
        return build_graph(trace)


def _print_replay(report: "ReplayReport") -> None:
    from asap.core.units import format_percent, format_seconds

    def seconds(value: float) -> str:
        return format_seconds(value) if value else "0"

    steps = [
        (
            rank.rank,
            what,
            time.label or number,
            seconds(time.measured_s),
            seconds(time.replayed_s),
            f"{time.error:+.2%}",
        )
        for rank in report.ranks
        for what, times in (("step", rank.steps), ("on the device", rank.device_iterations))
        for number, time in enumerate(times)
    ]
    print_table(("rank", "what", "number", "measured", "replayed", "error"), steps)
    print()
    columns = ("rank", "computing", "communicating", "of it waiting", "both", "host-bound", "idle")
    parts = [(rank.rank, rank.breakdown) for rank in report.ranks]
    rows = (
        (
            rank,
            seconds(part.exposed_compute_s),
            seconds(part.exposed_communication_s),
            "unknown" if part.waiting_s is None else seconds(part.waiting_s),
            seconds(part.overlap_s),
            seconds(part.host_s),
            seconds(part.idle_s),
        )
        for rank, part in parts
    )
    print_table(columns, rows)
    print()
    path = (
        (seconds(part.time_s), format_percent(part.share), part.rank, part.category, part.name, part.occurrences)
        for part in report.critical_path
    )
    print_table(("critical path", "share", "rank", "category", "what", "times"), path)
    print()
    shortened = ((each.change, seconds(each.step_time_s)) for each in report.shortened_by)
    print_table(("change", f"step time, now {seconds(report.step_time_s.replayed_s)}"), shortened)
    for each in report.stragglers:
        print(f"rank {each.rank} came last to {each.last} collectives; the others waited {seconds(each.waited_for_s)}")


def _say(quality: "Quality", notes: list[str]) -> None:
    from asap.core.units import format_percent

    print(f"quality: {quality.verdict}, {format_percent(quality.unexplained)} of the device's time unexplained")
    for note in notes:
        warn(note)
