"""One comment that stays: found by its hidden marker and its author, updated, never doubled."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from asap.ci.comment import MARKER
from asap.ci.github import GitHub, GoneError, LostError
from asap.core.errors import ServiceError

AUTHOR = "github-actions[bot]"
_ATTEMPTS = 3


@dataclass(frozen=True)
class Posted:
    """What was done, and to which comment."""

    action: str
    id: int | None


def upsert(
    github: GitHub, repository: str, number: int, body: str, *, author: str = AUTHOR, quiet: bool = False
) -> Posted:
    """Write the one comment of a pull request.

    Two jobs may post at the same time. Each looks again after it has created a comment, and keeps the oldest.

    Args:
        github: the API.
        repository: ``owner/name``.
        number: of the pull request.
        body: with the marker.
        author: whose comments are ours; a stranger's with the same marker is left alone.
        quiet: there is nothing to say: an old comment is updated, and no new one is made.

    Raises:
        ServiceError: GitHub refused, or failed too often.
    """
    comments = f"/repos/{repository}/issues/{number}/comments"
    for _ in range(_ATTEMPTS):
        try:
            return _attempt(github, repository, comments, body, author, quiet)
        except LostError:
            continue
    raise ServiceError("the comment could not be posted", where=comments, hint="run the job again later")


def _attempt(github: GitHub, repository: str, comments: str, body: str, author: str, quiet: bool) -> Posted:
    ours = _ours(github, comments, author)
    if ours:
        return _settle(github, repository, ours, body)
    if quiet:
        return Posted("nothing to say", None)
    created = int(github.request("POST", comments, body={"body": body})["id"])
    ours = _ours(github, comments, author)
    if len(ours) > 1:
        return _settle(github, repository, ours, body)
    return Posted("created", created)


def _settle(github: GitHub, repository: str, ours: list[dict[str, Any]], body: str) -> Posted:
    """Update the oldest comment, and take away the others; raises LostError if it was just deleted."""
    oldest, *others = ours
    place = f"/repos/{repository}/issues/comments"
    if oldest.get("body") != body:
        try:
            github.request("PATCH", f"{place}/{oldest['id']}", body={"body": body})
        except GoneError as error:
            raise LostError(error.message, where=error.where) from error
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
