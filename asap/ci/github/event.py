"""The pull request of a workflow run, from GitHub's own event file and never from what a fork uploaded."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from asap.ci.github.api import GitHub
from asap.core.errors import BadInputError, NotFoundError
from asap.core.units import Count
from asap.experiments.files.documents import read_text, validation_reason

_LARGEST_BYTES = 5_000_000
_Repository = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}\z")]
_Commit = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})\z")]


@dataclass(frozen=True)
class Event:
    """The repository, the commit that was checked, and what is known of its pull request."""

    repository: str
    commit: str
    number: int | None = None
    owner: str | None = None
    branch: str | None = None


class _Named(BaseModel):
    full_name: _Repository


class _Head(BaseModel):
    sha: _Commit


class _Request(BaseModel):
    number: Count
    head: _Head


class _Owner(BaseModel):
    login: str


class _Fork(BaseModel):
    owner: _Owner


class _Run(BaseModel):
    head_sha: _Commit
    head_branch: str | None = None
    head_repository: _Fork | None = None
    pull_requests: list[_Request] | None = None


class _EventFile(BaseModel):
    """What is read of GitHub's event; the rest is left alone."""

    repository: _Named
    workflow_run: _Run | None = None
    pull_request: _Request | None = None


def read_event(path: Path) -> Event:
    """The event of a ``workflow_run`` or a ``pull_request``.

    Raises:
        NotFoundError: there is no such file.
        BadInputError: it is not such an event.
    """
    try:
        event = _EventFile.model_validate_json(read_text(path, _LARGEST_BYTES))
    except ValidationError as error:
        raise _no_event(path, validation_reason(error)) from error
    if event.workflow_run is not None:
        return _event_of_run(event.repository.full_name, event.workflow_run)
    if event.pull_request is None:
        raise _no_event(path, "it has neither")
    return Event(event.repository.full_name, event.pull_request.head.sha, event.pull_request.number)


def pull_request(event: Event, github: GitHub) -> int | None:
    """Number of the open pull request whose head is the commit of the event; ``None`` if it moved on or was closed.

    GitHub lists no pull requests for a run of a fork, so they are looked up by the branch.
    """
    if event.number is not None:
        candidates = [github.request("GET", f"/repos/{event.repository}/pulls/{event.number}")]
    elif event.owner and event.branch:
        parameters = {"state": "open", "head": f"{event.owner}:{event.branch}"}
        candidates = list(github.pages(f"/repos/{event.repository}/pulls", parameters))
    else:
        raise NotFoundError("the event names neither a pull request nor a branch", where=event.commit[:12])
    for candidate in candidates:
        head = candidate.get("head")
        if candidate.get("state") == "open" and isinstance(head, dict) and head.get("sha") == event.commit:
            return int(candidate["number"])
    return None


def _event_of_run(repository: str, run: _Run) -> Event:
    requests = [one for one in run.pull_requests or () if one.head.sha == run.head_sha]
    return Event(
        repository=repository,
        commit=run.head_sha,
        number=requests[0].number if len(requests) == 1 else None,
        owner=run.head_repository.owner.login if run.head_repository else None,
        branch=run.head_branch,
    )


def _no_event(path: Path, reason: str) -> BadInputError:
    message = f"is not a workflow_run or pull_request event: {reason}"
    return BadInputError(message, where=str(path), hint="see the workflows that `asap ci init` writes")
