"""``asap report`` and ``asap compare``: an analysis as a page, and two runs side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.shared.options import Overrides, describes_run, experiments
from asap.cli.shared.output import Form, Plain, console, print_json
from asap.cli.shared.progress import progress

if TYPE_CHECKING:
    from asap.experiments.create import Statement
    from asap.reports.analysis import Analysis
    from asap.sharding_memory.analyses import StoredAnalysis


@describes_run
def report(
    experiment: Annotated[
        str,
        typer.Argument(
            help="An experiment ID, a log, configuration, launch script or profile.", autocompletion=experiments
        ),
    ],
    overrides: Overrides = None,
    *,
    stated: "Statement",
    html: Annotated[
        Path | None, typer.Option("--html", "--output", "-o", help="The file to write; default: EXPERIMENT.html.")
    ] = None,
    log_to: Annotated[str | None, typer.Option(help="Log the result to a run of MLflow: mlflow:RUN_ID.")] = None,
    session: Annotated[str | None, typer.Option(help="Session to report; default: the latest analysis.")] = None,
) -> None:
    """Write the latest analysis as one HTML file with charts. Without one, or where something is stated here, analyze
    with the built-in model first."""
    from asap.agents.settings import read_settings
    from asap.agents.workflow.analyze import analyze
    from asap.experiments import ExperimentStore
    from asap.experiments.create import NOTHING_STATED
    from asap.sharding_memory.analyses import latest_session, stored_analysis
    from asap.study.open_study import experiment_id, opened_path

    store = ExperimentStore()
    name = experiment_id(experiment, store)
    found = session
    if not found and stated == NOTHING_STATED and not overrides:
        found = latest_session(name, opened_path(experiment, store))
    if found is None:
        with progress() as show:
            settings = read_settings(model="builtin/planner")
            stored = analyze(
                experiment, store=store, stated=stated, overrides=overrides or (),
                settings=settings, progress=show, facts=None,
            ).stored  # fmt: skip
    else:
        stored = stored_analysis(found)
    path = html or Path(f"{name}.html")
    print(write_report(stored, path))
    if log_to is not None:
        _log(stored.analysis, path, log_to)


def write_report(stored: "StoredAnalysis", path: Path) -> str:
    """Write an analysis to a file; returns the line that says so."""
    from asap.core.files import write_output
    from asap.core.text import plain
    from asap.core.units import format_bytes
    from asap.experiments import ExperimentStore
    from asap.reports.html import render_page
    from asap.sharding_memory.dialogue import described
    from asap.study.open_study import reopen_study

    with progress() as show:
        study = reopen_study(stored.experiment, ExperimentStore(), show)
        show("drawing the report")
        log = [(one.sequence, one.time, one.kind.value, described(one)) for one in stored.records]
        text = render_page(stored.analysis, study, log)
    write_output(path, text)
    return f"report: {plain(path)} ({format_bytes(len(text.encode()))})"


def _log(analysis: "Analysis", path: Path, target: str) -> None:
    """Tags to filter runs by, the document and the page as artifacts."""
    from asap.experiments.trackers.source import publish

    tags = {
        "asap.bottleneck": analysis.diagnosis.bottleneck.value,
        "asap.recommendation": analysis.recommendation.statement,
        "asap.session": analysis.session,
        **{f"asap.proposal_{proposal.rank}": str(proposal.plan) for proposal in analysis.proposals},
    }
    publish(target, tags, {"asap/analysis.json": analysis.to_json(), "asap/report.html": path.read_text("utf-8")})
    print(f"logged to {target}: {len(tags)} tags, asap/analysis.json, asap/report.html")


Run = Annotated[
    str, typer.Argument(help="An experiment ID, a configuration, log or profile.", autocompletion=experiments)
]


def compare(
    before: Run,
    after: Run,
    top: Annotated[int, typer.Option(min=1, help="Maximum number of operations to print.")] = 20,
    format: Form = Plain.TERMINAL,
) -> None:
    """Compare two runs, and a prediction with what came of it. Shows plan, KPIs, and operations matched by name and
    shape."""
    from asap.core.text import plain
    from asap.experiments import ExperimentStore
    from asap.reports.comparison import compare_studies
    from asap.study.open_study import open_study

    store = ExperimentStore()
    with progress() as show:
        found = compare_studies(open_study(before, store, progress=show), open_study(after, store, progress=show))
    if found.before == found.after:  # files of one name
        found = found.model_copy(update={"before": plain(before, 200), "after": plain(after, 200)})
    if format is Plain.JSON:
        print_json(found)
        return
    from asap.reports.comparison.terminal import print_comparison

    print_comparison(found, console(), top)
