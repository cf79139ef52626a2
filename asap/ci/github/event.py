"""The pull request of a workflow run, from GitHub's own event file and never from what a fork uploaded."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asap.ci.github.api import GitHub
from asap.core.errors import BadInputError, NotFoundError
from asap.core.text import plain
from asap.experiments.documents import read_text

_LARGEST_BYTES = 5_000_000
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True)
class Event:
    """The repository, the commit that was checked, and what is known of its pull request."""

    repository: str
    commit: str
    number: int | None = None
    owner: str | None = None
    branch: str | None = None


def read_event(path: Path) -> Event:
    """The event of a ``workflow_run`` or a ``pull_request``.

    Raises:
        NotFoundError: there is no such file.
        BadInputError: it is not such an event.
    """
    try:
        event = json.loads(read_text(path, _LARGEST_BYTES))
        repository = event["repository"]["full_name"]
        if "workflow_run" in event:
            found = _of_run(repository, event["workflow_run"])
        else:
            request = event["pull_request"]
            found = Event(repository, request["head"]["sha"], request["number"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        reason = f"is not a workflow_run or pull_request event: {plain(error, 80)}"
        raise BadInputError(reason, where=str(path), hint="see the workflows that asap ci init writes") from error
    if not _REPOSITORY.fullmatch(str(found.repository)) or not _COMMIT.fullmatch(str(found.commit)):
        raise BadInputError("names no repository or no commit", where=str(path))
    return found


def pull_request(event: Event, github: GitHub) -> int | None:
    """Number of the open pull request whose head is the commit of the event; ``None`` if it moved on or was closed.

    GitHub lists no pull requests for a run of a fork, so they are looked up by the branch.
    """
    if event.number is not None:
        candidates = [_get(github, event.repository, event.number)]
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


def _of_run(repository: str, run: dict[str, Any]) -> Event:
    requests = [one for one in run.get("pull_requests") or [] if one["head"]["sha"] == run["head_sha"]]
    return Event(
        repository=repository,
        commit=run["head_sha"],
        number=int(requests[0]["number"]) if len(requests) == 1 else None,
        owner=str(run["head_repository"]["owner"]["login"]) if run.get("head_repository") else None,
        branch=str(run["head_branch"]) if run.get("head_branch") else None,
    )


def _get(github: GitHub, repository: str, number: int) -> dict[str, Any]:
    return github.request("GET", f"/repos/{repository}/pulls/{number}")
