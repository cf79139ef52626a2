"""``asap analyze``: from an experiment to three proposals."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.analysis.report import write_report
from asap.cli.shared import options as shared
from asap.cli.shared.output import Format, console, warn
from asap.cli.shared.progress import progress

if TYPE_CHECKING:
    from asap.experiments.create import Statement
    from asap.reports.analysis import Analysis


@shared.describes_run
def analyze(
    experiment: Annotated[
        str,
        typer.Argument(
            help="An experiment ID, a training log, a configuration or launch script, a log directory, a run folder, an"
            " xplane.pb or a GPU trace.",
            autocompletion=shared.experiments,
        ),
    ],
    overrides: shared.Overrides = None,
    *,
    stated: "Statement",
    plan: Annotated[
        str | None,
        typer.Option(help='The plan that ran, if not on record: "data=8 model=4".', autocompletion=shared.plan_terms),
    ] = None,
    llm: Annotated[
        str | None,
        typer.Option(help="Language model behind the agents; also ASAP_MODEL. Default: builtin/planner."),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Compile baseline and proposals first; --train-step and --maxtext imply it."),
    ] = False,
    train_step: shared.TrainStep = None,
    maxtext: shared.MaxText = False,
    python: shared.Python = "",
    engine: shared.Engine = "local",
    max_calls: Annotated[int | None, typer.Option(min=1, help="Maximum model calls.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Maximum tokens, input and output.")] = None,
    max_cost: Annotated[float | None, typer.Option(min=0.000001, help="Maximum US dollars.")] = None,
    allow: shared.Allow = None,
    steps_to_go: shared.StepsToGo = None,
    prices: shared.Prices = None,
    session: Annotated[str | None, typer.Option(help="Name of the session; default: a new one.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the report to this file as well, with charts.")] = None,
    format: Annotated[Format, typer.Option(help="Output format.")] = Format.TERMINAL,
    full: Annotated[bool, typer.Option("--full", help="The whole report, not one screen of it.")] = False,
) -> None:
    """Name the bottleneck of a run, and propose three plans."""
    from asap.agents.settings import read_settings
    from asap.cli.shared.options import read_preferences
    from asap.compiler.programs.options import CompileOptions
    from asap.core.errors import ServiceError
    from asap.experiments import ExperimentStore
    from asap.history.index_warmup import warm_up_indexes

    settings = read_settings(model=llm, max_calls=max_calls, max_tokens=max_tokens, max_cost=max_cost)
    options = CompileOptions(train_step, maxtext, python, engine=engine)
    stated = replace(stated, plan=plan, over_record=True)
    with progress() as show, warm_up_indexes():
        show("starting the agents")
        from asap.agents.workflow.analyze import analyze as run_analysis

        outcome = run_analysis(
            experiment,
            store=ExperimentStore(),
            stated=stated,
            overrides=overrides or (),
            preferences=read_preferences(allow or [], steps_to_go, prices),
            settings=settings,
            session=session,
            facts=None,
            progress=show,
            compile_options=options if verify or python or not options.is_reference else None,
        )
    render(outcome.analysis, format, full=full)
    if html is not None:
        warn(write_report(outcome.stored, html))
    if outcome.worklog_failure is not None:
        warn(f"the worklog of this run is incomplete: {outcome.worklog_failure}")
        if session is not None:  # it was asked for
            raise typer.Exit(ServiceError.exit_code)
    else:
        shared.say_usage(outcome.analysis.session)
    if outcome.failure is not None:
        warn(f"the agents gave no answer: {outcome.failure}")
        raise typer.Exit(outcome.failure.exit_code)
    if _has_no_answer(outcome.analysis):
        raise typer.Exit(5)


def render(analysis: "Analysis", format: Format, *, full: bool = False) -> None:
    """Print an analysis."""
    if format is Format.JSON:
        print(analysis.to_json())
    elif format is Format.MARKDOWN:
        from asap.reports.markdown import to_markdown

        print(to_markdown(analysis), end="")
    else:
        from asap.reports.terminal import print_analysis

        print_analysis(analysis, console(), full=full)


def _has_no_answer(analysis: "Analysis") -> bool:
    unknown = analysis.diagnosis.bottleneck.value == "insufficient_evidence"
    return unknown and not analysis.considered and analysis.incumbent is None
