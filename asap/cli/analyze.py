"""``asap analyze``: from an experiment to three proposals."""

from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.output import Format, console, progress, warn

if TYPE_CHECKING:
    from asap.reports import Analysis


def analyze(
    experiment: Annotated[str, typer.Argument(help="An experiment ID, a log directory, a run folder or an xplane.pb.")],
    plan: Annotated[str | None, typer.Option(help='The plan that ran, if not on record: "data=8 model=4".')] = None,
    hardware: Annotated[str | None, typer.Option(help="What it ran on, if not on record: v5e-256, h100-64.")] = None,
    topology: Annotated[str | None, typer.Option(help="Chips along each torus axis: 16x16.")] = None,
    model: Annotated[
        str | None,
        typer.Option(help="The language model behind the agents, also ASAP_MODEL; builtin/planner by default."),
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compile baseline and proposals for the TPU first.")] = False,
    train_step: Annotated[
        str | None, typer.Option(help="Compile your own step: package.module:function. Implies --verify.")
    ] = None,
    maxtext: Annotated[
        bool, typer.Option("--maxtext", help="Compile MaxText's own step, by the settings on record. Implies --verify.")
    ] = False,
    python: Annotated[str, typer.Option(help="The Python to compile with, where MaxText or your packages are.")] = "",
    engine: Annotated[
        str, typer.Option(envvar="ASAP_ENGINE", help="Where to compile: local, or ray://HOST:PORT.")
    ] = "local",
    max_calls: Annotated[int | None, typer.Option(min=1, help="Calls of the model, at most.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens in and out, at most.")] = None,
    max_cost: Annotated[float | None, typer.Option(min=0.000001, help="US dollars, at most.")] = None,
    session: Annotated[str | None, typer.Option(help="Name of the worklog; a new one by default.")] = None,
    chat: Annotated[bool, typer.Option("--chat", help="Talk about the result, as `asap chat` does.")] = False,
    format: Annotated[Format, typer.Option(help="How to print the result.")] = Format.TERMINAL,
) -> None:
    """Name the bottleneck of a run and propose three sharding configurations."""
    from asap.compiler.choice import Choice
    from asap.experiments import ExperimentStore
    from asap.experiments.intake import Statement, amend
    from asap.history.ahead import indexes_written_ahead

    choice = Choice(train_step, maxtext, python, engine=engine)
    said = Statement(plan=plan, hardware=hardware, topology=topology)
    with progress() as show, indexes_written_ahead():
        from asap.agents.run import analyze as run_analysis

        outcome = run_analysis(
            experiment,
            store=ExperimentStore(),
            amend=lambda record: amend(record, said),
            model=model,
            session=session,
            progress=show,
            compile_by=choice if verify or python or not choice.is_reference else None,
            max_calls=max_calls,
            max_tokens=max_tokens,
            max_cost=max_cost,
        )
    render(outcome.analysis, format)
    if outcome.worklog_failure is not None:
        warn(f"the worklog of this run is not whole: {outcome.worklog_failure}")
        raise typer.Exit(outcome.worklog_failure.exit_code)
    if outcome.failure is not None:
        warn(f"the agents gave no answer: {outcome.failure}")
        raise typer.Exit(outcome.failure.exit_code)
    if chat:
        from asap.cli.chat import chat as talk_about

        talk_about(outcome.analysis.experiment.id, model, max_calls, max_tokens, max_cost, outcome.analysis.session)
    elif _nothing_to_say(outcome.analysis):
        raise typer.Exit(5)


def render(analysis: "Analysis", format: Format) -> None:
    """Print an analysis."""
    if format is Format.JSON:
        print(analysis.to_json())
    elif format is Format.MARKDOWN:
        from asap.reports.markdown import to_markdown

        print(to_markdown(analysis), end="")
    else:
        from asap.reports.terminal import print_analysis

        print_analysis(analysis, console())


def _nothing_to_say(analysis: "Analysis") -> bool:
    return analysis.diagnosis.bottleneck.value == "insufficient_evidence" and not analysis.proposals
