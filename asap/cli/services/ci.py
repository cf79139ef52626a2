"""``asap ci``: check the training configurations that a pull request changes."""

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.shared.options import Hardware, Prices
from asap.cli.shared.output import warn
from asap.cli.shared.progress import progress

if TYPE_CHECKING:
    from asap.ci.report import CiReport
    from asap.ci.source.git import Repository
    from asap.ci.source.resolve import LinkedExperiments

app = typer.Typer(invoke_without_command=True, help="Check the configurations that a pull request changes.")

FAILED = 1


class CiFormat(StrEnum):
    """How a report is printed."""

    MARKDOWN = "markdown"
    JSON = "json"
    SARIF = "sarif"


@app.callback()
def check(
    context: typer.Context,
    base: Annotated[
        str | None, typer.Option(envvar="PRE_COMMIT_FROM_REF", help="Branch, tag or commit to merge into.")
    ] = None,
    head: Annotated[
        str, typer.Option(envvar="PRE_COMMIT_TO_REF", help="Branch, tag or commit of the change.")
    ] = "HEAD",
    files: Annotated[
        list[str] | None,
        typer.Option(help="Pattern of configurations, 'configs/**/*.yml'; may be repeated."),
    ] = None,
    experiments: Annotated[
        Path | None, typer.Option(help="Folder of experiment records to link configurations to.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="Policy file; by default asap.toml or pyproject.toml of the base commit.")
    ] = None,
    hardware: Hardware = None,
    prices: Prices = None,
    repository: Annotated[Path, typer.Option(help="Folder inside the repository.")] = Path(),
    format: Annotated[CiFormat, typer.Option(help="Output format.")] = CiFormat.MARKDOWN,
    output: Annotated[Path | None, typer.Option(help="Folder to write the report to, in all formats.")] = None,
) -> None:
    """Report how the change affects step time, memory and cost; exit code 1 if it violates the policy."""
    if context.invoked_subcommand is not None:
        return
    if base is None and "PRE_COMMIT" in os.environ:
        print("first push: pre-commit names no earlier commit to compare with")
        return
    from asap.ci.check import Options
    from asap.ci.check import check as run_check
    from asap.ci.source.git import Repository
    from asap.ci.source.policy import read_policy, read_prices
    from asap.core.errors import UsageError

    if base is None:
        raise UsageError("there is nothing to compare with", where="--base", hint="`asap ci --base origin/main`")
    options = Options(
        configurations=tuple(files or ()),
        policy=read_policy(policy) if policy else None,
        prices=read_prices(prices) if prices else None,
        hardware={"*": hardware} if hardware else None,
    )
    opened = Repository(repository)
    with progress() as show:
        report = run_check(opened, base, head, options, _linked_experiments(experiments, opened), show)
    _print_report(report, format, output)
    if report.failed:
        raise typer.Exit(FAILED)


@app.command()
def comment(
    artifact: Annotated[Path, typer.Option(help="asap-ci.json, or its folder.")],
    event: Annotated[Path, typer.Option(envvar="GITHUB_EVENT_PATH", help="Event file of the workflow run.")],
    token: Annotated[str, typer.Option(envvar="GITHUB_TOKEN", help="Token that may write to pull requests.")],
    api: Annotated[str, typer.Option(envvar="GITHUB_API_URL", help="GitHub API base URL.")] = "https://api.github.com",
    author: Annotated[str, typer.Option(help="Login whose comment is updated.")] = "github-actions[bot]",
    llm: Annotated[str | None, typer.Option(help="Language model that adds a few checked sentences.")] = None,
) -> None:
    """Post or update the comment on a pull request."""
    from asap.ci.github.api import GitHub
    from asap.ci.github.event import pull_request, read_event
    from asap.ci.github.sticky import upsert
    from asap.ci.render.comment import to_comment
    from asap.ci.render.workflow import read_artifact

    found = read_event(event)
    report = read_artifact(artifact, found.commit)
    github = GitHub(token, api)
    try:
        number = pull_request(found, github)
        if number is None:
            print(f"{found.commit[:12]} is not the head of an open pull request: nothing is posted")
            return
        changed = bool(report.configurations)
        body = to_comment(report, remark=_remark(report, llm) if llm and changed else None)
        posted = upsert(github, found.repository, number, body, author=author, create=changed)
        print(f"pull request {number}: {posted.action}")
    finally:
        github.close()


@app.command()
def init(
    action: Annotated[str, typer.Option(help="Where ASAP's action.yml is: owner/repository@commit.")],
    repository: Annotated[Path, typer.Option(help="Top folder of the repository.")] = Path(),
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite existing workflows.")] = False,
) -> None:
    """Write the two GitHub workflows that check pull requests. Those from forks are checked, too."""
    from asap.ci.github.init import is_pinned, write_workflows

    for path in write_workflows(repository, action, replace):
        print(f"wrote {path}")
    if not is_pinned(action):
        warn("a tag or branch can be moved: pin the action to a full commit hash")


def _linked_experiments(folder: Path | None, repository: "Repository") -> "LinkedExperiments":
    from asap.ci.source.resolve import LinkedExperiments
    from asap.core.errors import NotFoundError
    from asap.core.files import exists
    from asap.experiments import ExperimentStore

    if folder is not None and not (exists(folder) and folder.is_dir()):
        raise NotFoundError("no such folder of experiments", where=str(folder))
    return LinkedExperiments(ExperimentStore(folder), repository.work_tree_around(folder) if folder else None)


def _remark(report: "CiReport", model: str) -> str | None:
    """A few sentences of a model; ``None`` if it fails, as the comment does not depend on it."""
    from asap.agents.llm.models import check_model
    from asap.agents.settings import read_settings
    from asap.agents.workflow.ci_summary import summarize
    from asap.core.errors import ServiceError
    from asap.sharding_memory import Worklog, new_session_name

    try:
        check_model(model)
        return summarize(report, read_settings(model=model), Worklog(new_session_name()))
    except ServiceError as error:
        warn(f"the comment is posted without the model's remark: {error}")
        return None


def _print_report(report: "CiReport", format: CiFormat, output: Path | None) -> None:
    import sys

    from asap.ci.render.comment import to_comment
    from asap.ci.render.workflow import annotations, append_step_summary, to_sarif, write_artifact

    if output is not None:
        write_artifact(report, output)
    written = {CiFormat.JSON: type(report).to_json, CiFormat.SARIF: to_sarif, CiFormat.MARKDOWN: to_comment}
    print(written[format](report))
    append_step_summary(report)
    for line in annotations(report):
        print(line, file=sys.stderr)
