"""``asap trace``: the execution graph of a traced run, its replay and what-if on it."""

import re
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.shared.options import profile_path
from asap.cli.shared.output import Form, Plain, print_json, print_table, warn
from asap.cli.shared.progress import progress
from asap.traces.what_if.change import GRAMMAR, SETTINGS

if TYPE_CHECKING:
    from asap.traces.analysis.report import Quality, WhatIfReport
    from asap.traces.graph.graph import Graph

app = typer.Typer(no_args_is_help=True, help="Replay the trace of a run, and ask what a change would bring.")

_TRACES = "Traces of one run (Kineto, XPlane, nsys, nsys-jax, Chakra), a folder of them, or an experiment."
Paths = Annotated[list[str], typer.Argument(help=_TRACES)]
Path = Annotated[str, typer.Argument(help="One trace, a folder with all ranks of one run, or an experiment.")]


_CHANGES = re.sub("\n{2,}", "\n", f"{GRAMMAR}\nWith --experiment also\n{SETTINGS}")


@app.command()
def load(paths: Paths, form: Form = Plain.TERMINAL) -> None:
    """What a trace holds, and what is missing. Shows ranks, steps, streams, clocks, and how much of it can be
    explained."""
    from asap.reports.trace_facts import clock_sentence, contents_table
    from asap.traces.summary import describe

    report = describe(_graph([profile_path(path) for path in paths]))
    if form is Plain.JSON:
        print_json(report)
        return
    print_table(*contents_table(report))
    if report.clock_spread_s is not None:
        print(clock_sentence(report.clock_spread_s))
    _say(report.quality, report.notes)


@app.command()
def replay(
    paths: Paths,
    chakra: Annotated[
        str | None, typer.Option(help="Write Chakra execution traces into a folder, a file a rank.")
    ] = None,
    form: Form = Plain.TERMINAL,
) -> None:
    """Replay a trace, and say where the time goes. Shows step time against measured, breakdown of each rank,
    stragglers, and the critical path."""
    from asap.reports.trace_facts import replay_tables, straggler_sentences
    from asap.traces.recording import read_hosts
    from asap.traces.summary import report_replay

    paths = [profile_path(path) for path in paths]
    graph = _graph(paths)
    hosts = {number: work for path in paths for number, work in read_hosts(path).items()}
    report = report_replay(graph, hosts)
    if chakra is not None:
        from asap.traces.chakra import write_chakra

        write_chakra(graph, FilePath(chakra))
    if form is Plain.JSON:
        print_json(report)
        return
    for table in replay_tables(report):
        print_table(*table)
        print()
    for sentence in straggler_sentences(report):
        print(sentence)
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
    from asap.reports.trace_facts import what_if_tables

    report = _what_if(path, changes, experiment, plan)
    if form is Plain.JSON:
        print_json(report)
        return
    for table in what_if_tables(report):
        print_table(*table)
        print()
    _say(report.quality, report.notes)


def _what_if(path: str, changes: list[str], experiment: str | None, plan: str | None) -> "WhatIfReport":
    from asap.experiments import ExperimentStore
    from asap.prediction.from_trace.predict import what_if
    from asap.prediction.from_trace.run import chip_asked
    from asap.study.open_study import open_study
    from asap.study.study import read_plan
    from asap.traces.recording import read_hosts
    from asap.traces.summary import what_if_report
    from asap.traces.what_if.change import parse_change

    for change in changes if experiment is None else ():
        if not chip_asked(change):
            parse_change(change)
    study = open_study(experiment, ExperimentStore()) if experiment is not None else None
    traced = read_plan(study, plan) if study is not None and plan else None
    path = profile_path(path)
    graph = _graph([path])
    found = what_if(graph, changes, study, traced, path)
    return what_if_report(graph, changes, found, read_hosts(path))


def _graph(paths: list[str]) -> "Graph":
    from asap.traces.graph.build import build_graph
    from asap.traces.recording import load_trace

    with progress() as show:
        trace = load_trace(paths, show)
        show("building the graph")
        return build_graph(trace)


def _say(quality: "Quality", notes: list[str]) -> None:
    from asap.reports.trace_facts import quality_sentence

    print(quality_sentence(quality))
    for note in notes:
        warn(note)
