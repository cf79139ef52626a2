"""``asap ci``: what a pull request does to its training configurations."""

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.output import progress, warn

if TYPE_CHECKING:
    from asap.ci.git import Repository
    from asap.ci.known import Known
    from asap.ci.report import CiReport

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
        str | None, typer.Option(envvar="PRE_COMMIT_FROM_REF", help="What the change is to be merged into.")
    ] = None,
    head: Annotated[str, typer.Option(envvar="PRE_COMMIT_TO_REF", help="The change.")] = "HEAD",
    config: Annotated[
        list[str] | None, typer.Option(help="Pattern of configurations, 'configs/**/*.yml'; may be repeated.")
    ] = None,
    experiments: Annotated[Path | None, typer.Option(help="Folder of records to link configurations to.")] = None,
    policy: Annotated[Path | None, typer.Option(help="asap.toml; by default that of the base commit.")] = None,
    prices: Annotated[Path | None, typer.Option(help="TOML: currency, and [chips] with a price a chip-hour.")] = None,
    repository: Annotated[Path, typer.Option(help="A folder inside the repository.")] = Path(),
    format: Annotated[CiFormat, typer.Option(help="How to print.")] = CiFormat.MARKDOWN,
    output: Annotated[Path | None, typer.Option(help="Folder for all formats.")] = None,
) -> None:
    """Report what changed configurations do to step time, memory and cost; exits with 1 if the policy fails them."""
    if context.invoked_subcommand is not None:
        return
    if base is None and "PRE_COMMIT" in os.environ:
        print("pre-commit names no earlier commit, as for a first push: nothing is compared")
        return
    from asap.ci.check import Options
    from asap.ci.check import check as run_check
    from asap.ci.git import Repository
    from asap.ci.policy import read_policy, read_prices
    from asap.core.errors import UsageError

    if base is None:
        raise UsageError("say what to compare with", where="--base", hint="asap ci --base origin/main")
    options = Options(
        configurations=tuple(config or ()),
        policy=read_policy(policy) if policy else None,
        prices=read_prices(prices) if prices else None,
    )
    opened = Repository(repository)
    with progress() as show:
        report = run_check(opened, base, head, options, _known(experiments, opened), show)
    _tell(report, format, output)
    if report.failed:
        raise typer.Exit(FAILED)


@app.command()
def comment(
    artifact: Annotated[Path, typer.Option(help="asap-ci.json, or the folder that holds it.")],
    event: Annotated[Path, typer.Option(envvar="GITHUB_EVENT_PATH", help="The event of the workflow run.")],
    token: Annotated[str, typer.Option(envvar="GITHUB_TOKEN", help="May write to pull requests.")],
    api: Annotated[str, typer.Option(envvar="GITHUB_API_URL", help="Where the API lies.")] = "https://api.github.com",
    author: Annotated[str, typer.Option(help="Whose comments are ours.")] = "github-actions[bot]",
    model: Annotated[str | None, typer.Option(help="A language model that adds a few checked sentences.")] = None,
) -> None:
    """Post a report as the one comment of its pull request, or update it."""
    from asap.ci.artifact import read_artifact
    from asap.ci.comment import to_comment
    from asap.ci.event import pull_request, read_event
    from asap.ci.github import GitHub
    from asap.ci.sticky import upsert

    found = read_event(event)
    report = read_artifact(artifact, found.commit)
    github = GitHub(token, api)
    try:
        number = pull_request(found, github)
        if number is None:
            print(f"{found.commit[:12]} is not the head of an open pull request: nothing is posted")
            return
        quiet = not report.configurations
        body = to_comment(report, remark=_remark(report, model) if model and not quiet else None)
        posted = upsert(github, found.repository, number, body, author=author, quiet=quiet)
        print(f"pull request {number}: {posted.action}")
    finally:
        github.close()


@app.command()
def init(
    action: Annotated[str, typer.Option(help="ASAP's action: owner/repository@commit.")],
    repository: Annotated[Path, typer.Option(help="The top of the repository.")] = Path(),
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite workflows that are there.")] = False,
) -> None:
    """Write the two workflows that check pull requests, those of forks included."""
    from asap.ci.init import is_pinned, write_workflows

    for path in write_workflows(repository, action, replace):
        print(f"wrote {path}")
    if not is_pinned(action):
        warn("the action is named by a tag or a branch, which can be moved: name the 40 digits of a commit")


def _known(folder: Path | None, repository: "Repository") -> "Known":
    from asap.ci.known import Known
    from asap.core.errors import NotFoundError
    from asap.experiments import ExperimentStore

    if folder is not None and not folder.is_dir():
        raise NotFoundError("no such folder of experiments", where=str(folder))
    return Known(ExperimentStore(folder), repository.inside(folder) if folder else None)


def _remark(report: "CiReport", model: str) -> str | None:
    """The words of a model; without it, the comment is posted all the same."""
    from asap.agents.preflight import check_model
    from asap.agents.remark import remark
    from asap.agents.settings import read_settings
    from asap.core.errors import ServiceError
    from asap.sharding_memory import Worklog, new_session_name

    try:
        check_model(model)
        return remark(report, read_settings(model=model), Worklog(new_session_name()))
    except ServiceError as error:
        warn(f"the comment goes without the model's words: {error}")
        return None


def _tell(report: "CiReport", format: CiFormat, output: Path | None) -> None:
    import sys

    from asap.ci.artifact import write_artifact
    from asap.ci.comment import to_comment
    from asap.ci.sarif import to_sarif
    from asap.ci.workflow import tell_workflow

    if output is not None:
        write_artifact(report, output)
    written = {CiFormat.JSON: type(report).to_json, CiFormat.SARIF: to_sarif, CiFormat.MARKDOWN: to_comment}
    print(written[format](report))
    for line in tell_workflow(report):
        print(line, file=sys.stderr)
