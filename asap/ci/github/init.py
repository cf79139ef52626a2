"""``asap ci init``: the two workflows that check a repository, split so that forks get no privileges."""

import re
from pathlib import Path

from asap.core.errors import UsageError
from asap.core.files import write_atomically
from asap.core.text import plain

WORKFLOWS = ("asap-check.yml", "asap-comment.yml")
_FOLDER = Path(".github/workflows")
_TEMPLATES = Path(__file__).parent / "templates"
_ACTION = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)+@(?P<version>[A-Za-z0-9._/-]+)")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_PLACEHOLDER = "ASAP_ACTION"


def write_workflows(folder: Path, action: str, replace: bool = False) -> list[Path]:
    """Write both workflows into a repository; their paths.

    Args:
        folder: the top of the repository.
        action: ``owner/repository@commit`` of ASAP's action.
        replace: overwrite what is there.

    Raises:
        UsageError: the action is malformed, or a workflow exists already.
    """
    found = _ACTION.fullmatch(action)
    if found is None:
        raise UsageError("is not owner/repository@commit", where=plain(action, 80) or "--action")
    paths = [folder / _FOLDER / name for name in WORKFLOWS]
    taken = next((path for path in paths if path.exists()), None)
    if taken is not None and not replace:
        raise UsageError("already exists", where=str(taken), hint="--replace overwrites it")
    for path in paths:
        template = (_TEMPLATES / path.name).read_text(encoding="utf-8")
        write_atomically(path, template.replace(_PLACEHOLDER, action))
    return paths


def is_pinned(action: str) -> bool:
    """Whether an action is pinned to a commit, not to a tag or branch that can move."""
    found = _ACTION.fullmatch(action)
    return found is not None and _COMMIT.fullmatch(found["version"]) is not None
