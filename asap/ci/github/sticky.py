"""One comment per pull request: found by its hidden marker and its author, updated, never duplicated."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from asap.ci.github.api import ConnectionLostError, GitHub, GoneError
from asap.ci.render.comment import MARKER
from asap.core.errors import ServiceError

AUTHOR = "github-actions[bot]"
_ATTEMPTS = 3


@dataclass(frozen=True)
class Posted:
    """What was done, and to which comment."""

    action: str
    id: int | None


def upsert(
    github: GitHub, repository: str, number: int, body: str, *, author: str = AUTHOR, create: bool = True
) -> Posted:
    """Create or update the one comment of a pull request.

    Two jobs may post at the same time, so each looks again after creating a comment and keeps only the oldest.

    Args:
        github: the API.
        repository: ``owner/name``.
        number: of the pull request.
        body: with the marker.
        author: login whose comments are ours; other comments with the marker are left alone.
        create: whether to post a new comment if there is none to update.

    Raises:
        ServiceError: GitHub refused, or failed too often.
    """
    comments = f"/repos/{repository}/issues/{number}/comments"
    for _ in range(_ATTEMPTS):
        try:
            return _attempt(github, repository, comments, body, author, create)
        except ConnectionLostError:
            continue
    raise ServiceError("the comment could not be posted", where=comments, hint="run the job again later")


def _attempt(github: GitHub, repository: str, comments: str, body: str, author: str, create: bool) -> Posted:
    ours = _ours(github, comments, author)
    if ours:
        return _update_oldest(github, repository, ours, body)
    if not create:
        return Posted("nothing to post", None)
    created = int(github.request("POST", comments, body={"body": body})["id"])
    ours = _ours(github, comments, author)
    if len(ours) > 1:
        return _update_oldest(github, repository, ours, body)
    return Posted("created", created)


def _update_oldest(github: GitHub, repository: str, ours: list[dict[str, Any]], body: str) -> Posted:
    """Update the oldest comment and delete the others.

    Raises:
        ConnectionLostError: it was deleted meanwhile, so that the attempt is repeated.
    """
    oldest, *others = ours
    place = f"/repos/{repository}/issues/comments"
    if oldest.get("body") != body:
        try:
            github.request("PATCH", f"{place}/{oldest['id']}", body={"body": body})
        except GoneError as error:
            raise ConnectionLostError(error.message, where=error.where) from error
    for other in others:
        with suppress(GoneError):
            github.request("DELETE", f"{place}/{other['id']}")
    return Posted("updated" if oldest.get("body") != body else "kept", int(oldest["id"]))


def _ours(github: GitHub, comments: str, author: str) -> list[dict[str, Any]]:
    found = [
        comment
        for comment in github.pages(comments)
        if str(comment.get("body") or "").startswith(MARKER) and (comment.get("user") or {}).get("login") == author
    ]
    return sorted(found, key=lambda comment: int(comment["id"]))
