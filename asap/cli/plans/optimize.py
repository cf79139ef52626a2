"""``asap optimize``: evaluate, learn, propose again, stop in time."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer.core import TyperGroup

from asap.cli.shared import options as shared
from asap.cli.shared.output import Form, Plain, print_json, warn
from asap.cli.shared.progress import progress

if TYPE_CHECKING:
    from asap.experiments.create import Statement
    from asap.optimize.by_space import SpaceRequest
    from asap.optimize.loop import Making
    from asap.optimize.report import OptimizationReport
    from asap.optimize.request import Request
    from asap.optimize.session import Session
    from asap.study.study import Study


class _Group(TyperGroup):
    """``asap optimize EXPERIMENT`` is ``asap optimize run EXPERIMENT``."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Group, no_args_is_help=True, help="Find the fastest configuration that runs, in few evaluations."
)

Yes = Annotated[bool, typer.Option("--yes", help="Spend without asking.")]
SessionName = Annotated[str, typer.Argument(help="Name of a session.", autocompletion=shared.session_names)]
_STEPS = 20


@app.command()
@shared.describes_run
def run(
    experiment: Annotated[
        str | None,
        typer.Argument(help="An experiment ID, a configuration or a profile.", autocompletion=shared.experiments),
    ] = None,
    overrides: shared.Overrides = None,
    *,
    stated: "Statement",
    evaluate: Annotated[
        Literal["model", "compiler", "run"],
        typer.Option(help="What evaluates a configuration: the model, the TPU compiler, or runs of your command."),
    ] = "model",
    budget: Annotated[
        str | None, typer.Option(help="Maximum evaluations or time: 8, 30m, 2h. Required unless --evaluate model.")
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            help="What starts a run: './train.sh {overrides}'; also {config}, {without}, {plan}, {try}, {folder}."
        ),
    ] = None,
    template: Annotated[
        Path | None, typer.Option(help="Your launcher's YAML, JSON or TOML: {config} is a copy with a try's settings.")
    ] = None,
    wait_for: Annotated[
        str | None,
        typer.Option(help="If the command returns at once: what follows the job {try} and prints its log."),
    ] = None,
    cancel: Annotated[str | None, typer.Option(help="What cancels such a job, with {try}.")] = None,
    steps_from: Annotated[
        str | None, typer.Option(help="Step times, where the log has none: tensorboard:{folder}/logs, mlflow:{try}.")
    ] = None,
    space: Annotated[
        Path | None, typer.Option(help="TOML file with settings of any program to search, in place of EXPERIMENT.")
    ] = None,
    parallel: Annotated[int, typer.Option(min=1, max=64, help="Runs at once, each on devices of its own.")] = 1,
    steps: Annotated[
        int, typer.Option(min=3, help="Steps to measure after the warm-up; then the run is stopped.")
    ] = _STEPS,
    time_limit: Annotated[str, typer.Option(help="Time limit of one run: 90s, 30m.")] = "1h",
    train_step: shared.TrainStep = None,
    maxtext: shared.MaxText = False,
    python: shared.Python = "",
    engine: shared.Engine = "local",
    idea: Annotated[
        list[str] | None,
        typer.Option(help="A change to try on the best plan: key=value, '--option value', xla_flag=…, VARIABLE=…."),
    ] = None,
    allow: shared.Allow = None,
    steps_to_go: shared.StepsToGo = None,
    prices: shared.Prices = None,
    llm: Annotated[
        str | None, typer.Option(help="Language model that proposes; default: the built-in proposer.")
    ] = None,
    session: Annotated[str | None, typer.Option(help="Name of the session; default: a new one.")] = None,
    yes: Yes = False,
    form: Form = Plain.TERMINAL,
) -> None:
    """Search all configurations, and evaluate the best. Ends when no further evaluation is worth its cost."""
    from dataclasses import replace

    from asap.cli.shared.options import read_preferences
    from asap.core.errors import UsageError
    from asap.experiments import ExperimentStore
    from asap.experiments.create import amend, said_of
    from asap.optimize.request import Budget, Request
    from asap.optimize.session import Session
    from asap.sharding_memory import new_session_name
    from asap.sharding_memory.analyses import standing_facts
    from asap.study.open_study import open_study, opened_path

    if space is not None:
        from asap.experiments.create import NOTHING_STATED
        from asap.optimize.by_space import SpaceRequest
        from asap.optimize.space import read_space

        of_runs = (experiment, idea, llm, allow, steps_to_go, prices, train_step, maxtext, stated != NOTHING_STATED)
        if any(of_runs) or evaluate == "compiler" or budget is None:
            hint = "give --space FILE --command COMMAND --budget BUDGET, and no experiment or what is said of one"
            raise UsageError("searches settings of any program, by runs alone", where="--space", hint=hint)
        asked = SpaceRequest(
            space=read_space(space), budget=Budget.parse(budget), command=command, wait_for=wait_for, cancel=cancel,
            steps_from=steps_from, config=str(template) if template else None, folder=str(Path.cwd()), steps=steps,
            try_seconds=shared.duration_s(time_limit), parallel=parallel,
        )  # fmt: skip
        asked.evaluator("check", lambda line: None)
        _ask(asked, None, yes)
        _go(asked, Session.start(session or new_session_name(), asked.model_dump(mode="json")), form)
        return
    if experiment is None:
        raise UsageError("what is to be optimized?", where="asap optimize", hint="EXPERIMENT, or --space FILE")
    preferences = read_preferences(allow or [], steps_to_go, prices)
    if evaluate != "run" and (command is not None or template is not None or idea):
        where = "--command" if command is not None else "--template" if template is not None else "--idea"
        raise UsageError("is for --evaluate run", where=where)
    if evaluate != "model" and budget is None:
        hint = "--budget 8 for so many evaluations, --budget 30m for so much time"
        raise UsageError("an evaluation costs something: say how much may be spent", where="--budget", hint=hint)
    with progress() as show:
        show("searching configurations")
        opened = open_study(
            experiment, ExperimentStore(), lambda record: amend(record, stated), overrides=overrides or ()
        )
        study = replace(opened, preferences=preferences)
    for warning in study.warnings:
        warn(warning)
    if evaluate == "model":
        from asap.optimize.by_model import optimize_by_model

        said = said_of(stated, overrides or ())
        facts = standing_facts(study.experiment, opened_path(experiment, ExperimentStore()), said)
        for fact in facts:
            warn(f"on record from an earlier chat: {fact}")
        _print(optimize_by_model(study, facts), form)
        return
    from asap.proposals.typed_change import read_typed

    request = Request(
        experiment=study.experiment, evaluate=evaluate, budget=Budget.parse(budget or ""), command=command,
        wait_for=wait_for, cancel=cancel, steps_from=steps_from, config=str(template) if template else None,
        train_step=train_step, maxtext=maxtext, python=python, engine=engine,
        folder=str(Path.cwd()), steps=steps, try_seconds=shared.duration_s(time_limit), parallel=parallel,
        model=checked_model(llm),
        allowed=tuple(sorted(preferences.allowed)), steps_to_go=steps_to_go, prices=dict(preferences.prices),
        currency=preferences.currency, ideas=tuple(map(read_typed, idea or ())),
    )  # fmt: skip
    request.evaluator("check", lambda line: None)
    _ask(request, study, yes)
    _go(request, Session.start(session or new_session_name(), request.model_dump(mode="json")), form)


@app.command()
def resume(
    session: SessionName,
    budget: Annotated[str | None, typer.Option(help="Another budget, of the whole session.")] = None,
    command: Annotated[str | None, typer.Option(help="Another command to start runs with.")] = None,
    yes: Yes = False,
    form: Form = Plain.TERMINAL,
) -> None:
    """Go on with a session, from where it was stopped or killed."""
    from asap.optimize.by_space import open_any
    from asap.optimize.request import Budget, Request

    opened = open_any(session)
    changes = {"budget": Budget.parse(budget)} if budget else {}
    request = opened[0].model_copy(update=changes | ({"command": command} if command else {}))
    request.evaluator("check", lambda line: None)
    _ask(request, request.study if isinstance(request, Request) else None, yes)
    _go(request, opened[1], form)


@app.command()
def show(session: SessionName, form: Form = Plain.TERMINAL) -> None:
    """Show every try of a session and the best so far."""
    from asap.optimize.by_space import report_of_any

    _print(report_of_any(session), form)


@app.command()
def record(session: SessionName) -> None:
    """Add what a session measured to the history. Later searches and proposals find it as a precedent."""
    from asap.history import add
    from asap.optimize.by_evaluation import open_session
    from asap.optimize.precedents import precedents

    for made in precedents(*open_session(session)):
        add(made)
        print(f"recorded {made.id}: {made.outcome.value.replace('_', ' ')}")


def _go(request: "Request | SpaceRequest", session: "Session", form: Plain) -> None:
    import sys

    from asap.cli.shared.progress import LiveTable
    from asap.optimize.by_evaluation import optimize_by_evaluation
    from asap.optimize.by_space import SpaceRequest, optimize_space

    with LiveTable(sys.stderr, session.name) as live:
        if isinstance(request, SpaceRequest):
            found = optimize_space(request, session, live.show, live.report)
        else:
            proposer = agent_proposer(request.model, request.budget.evaluations, request.study)
            found = optimize_by_evaluation(request, session, show=live.show, report=live.report, proposer=proposer)
    _print(found, form)
    if found.stopped is not None and found.stopped.reason == "interrupted":
        raise typer.Exit(130)
    if found.best is None:
        raise typer.Exit(5)


def agent_proposer(model: str | None, evaluations: int | None, study: "Study | None" = None) -> "Making":
    """A language model where one is asked for, else the built-in proposer."""
    from asap.optimize.loop import engine_alone

    if model is None:
        return engine_alone
    from asap.agents.settings import read_settings
    from asap.agents.workflow.evaluator import AgentProposer

    return lambda session, engine: AgentProposer(
        engine, read_settings(model=model), session.worklog, evaluations, study
    )


def checked_model(model: str | None) -> str | None:
    """The model, if it is one and can be reached; the built-in planner is no language model."""
    from asap.agents.settings import BUILTIN

    if model is None or model == BUILTIN:
        return None
    from asap.agents.llm.models import check_model

    check_model(model)
    return model


def _ask(request: "Request | SpaceRequest", study: "Study | None", yes: bool) -> None:
    """Say what may be spent, and ask; on a pipe there is nobody to ask."""
    import sys

    from asap.core.errors import UsageError
    from asap.core.text import plain
    from asap.optimize.by_space import SpaceRequest

    if yes or request.evaluate != "run":
        return
    chips = f" on {study.slice.chips} x {study.slice.chip.title}" if study and study.slice else ""
    cost = "" if isinstance(request, SpaceRequest) else request.cost
    print(f"This runs, {request.budget.phrase}{chips}{cost}: {plain(request.command, 300)}", file=sys.stderr)
    if request.ideas:
        print(f"With the ideas: {plain('; '.join(request.ideas), 300)}", file=sys.stderr)
    if not sys.stdin.isatty():
        raise UsageError("nobody is here to agree to the cost", where="asap optimize", hint="--yes agrees to it")
    if not typer.confirm("Spend it?", err=True):
        raise typer.Exit(1)


def _print(found: "OptimizationReport", form: Plain) -> None:
    if form is Plain.JSON:
        print_json(found)
        return
    from asap.cli.shared.output import console
    from asap.optimize.table import print_report

    print_report(found, console())
