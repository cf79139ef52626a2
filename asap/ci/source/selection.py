"""Which configurations a pull request changes: changed files, and those that include one."""

import difflib
import re
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import PurePosixPath

from asap.ci.report import Status
from asap.ci.source.git import Repository
from asap.ci.source.policy import Policy
from asap.ci.source.revision import Revision, companions
from asap.core.errors import AsapError, ConfigError
from asap.core.limits import FILE_LIMITS, LimitReachedError, within
from asap.experiments import Experiment, known_keys, read_configuration, read_launch
from asap.experiments.experiment import SCHEMA
from asap.experiments.logs.read import SUFFIXES as LOGS
from asap.experiments.shell import SCRIPTS

_KEY = re.compile(r"^\s?\s?[\"']?([a-z]\w*)[\"']?\s*:", re.MULTILINE | re.ASCII)
_FOLDERS = {"models": "model_name", "custom_mesh_and_rule": "custom_mesh_and_rule"}
"""Folders of files that MaxText finds by name, and the key that says the name."""
_NAMING = re.compile(rf"\b({'|'.join(_FOLDERS.values())})\s*[:=]\s*['\"]?([\w.-]+)", re.ASCII)
_DOCUMENTS = (".yaml", ".yml", ".toml", ".json")
_ENOUGH_KEYS = 3
_DEEPEST = 8
MOST_LINES = 3000
"""Lines of a file that is compared line by line; MaxText's base.yml has about a thousand."""


@dataclass(frozen=True)
class ChangedConfiguration:
    """A configuration at both commits; a side is ``None`` where there is no such file."""

    status: Status
    before: str | None
    after: str | None

    @property
    def path(self) -> str:
        """The current path; the old one if the file was deleted."""
        return self.after or self.before or ""


def changed_configurations(
    repository: Repository, base: Revision, head: Revision, policy: Policy, until: float = inf
) -> tuple[list[ChangedConfiguration], int]:
    """All configurations that differ between two commits, by path, and how many files there was no time to look into.

    Args:
        repository: that holds the commits.
        base: before the change.
        head: after it.
        policy: which files are meant.
        until: moment of :func:`time.monotonic` after which no file is looked into.
    """
    renames = repository.renames(base.commit, head.commit)
    found = {one.path: one for one in _changed(base, head, renames) if policy.covers(one.path)}
    changed, late = dict[str, ChangedConfiguration](), 0
    for path, one in found.items():
        if _only_moved(base, head, one):
            continue
        if time.monotonic() > until:
            late += 1
        elif policy.configurations or _is_configuration(base, head, one):
            changed[path] = one
    names = {path for one in _changed(base, head, renames) for path in (one.before, one.after) if path}
    for path in _including(repository, head, names):
        if path not in found and policy.covers(path) and time.monotonic() <= until:
            one = ChangedConfiguration("affected", path if path in base.tree else None, path)
            if policy.configurations or _is_configuration(base, head, one):
                changed[path] = one
    parts = {path for path in _parts(head, changed) & changed.keys() if not _is_run(head, path)}
    return [changed[path] for path in sorted(changed.keys() - parts)], late


def changed_lines(before: str | None, after: str | None) -> list[int]:
    """Numbers of the lines of ``after`` that are new or follow a deletion; ``[1]`` for a very long file."""
    old, new = (before or "").splitlines(), (after or "").splitlines()
    if max(len(old), len(new)) > MOST_LINES:
        return [1]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    lines = [
        line
        for tag, _, _, start, end in matcher.get_opcodes()
        if tag != "equal"
        for line in range(start + 1, max(end, start + 1) + 1)
    ]
    return [line for line in lines if line <= len(new)] or [1]


def _changed(base: Revision, head: Revision, renames: dict[str, str]) -> Iterator[ChangedConfiguration]:
    moved = set(renames.values())
    for path, entry in head.tree.items():
        old = path if path in base.tree else renames.get(path)
        if old is None:
            yield ChangedConfiguration("added", None, path)
        elif old != path:
            yield ChangedConfiguration("renamed", old, path)
        elif base.tree[path].object != entry.object or base.tree[path].is_file != entry.is_file:
            yield ChangedConfiguration("modified", path, path)
    yield from (
        ChangedConfiguration("deleted", path, None) for path in base.tree if path not in head.tree and path not in moved
    )


def _only_moved(base: Revision, head: Revision, one: ChangedConfiguration) -> bool:
    if one.status != "renamed" or one.before is None or one.after is None:
        return False
    return base.tree[one.before].object == head.tree[one.after].object


def _is_configuration(base: Revision, head: Revision, one: ChangedConfiguration) -> bool:
    """What cannot be read within limits counts as one: the report says why it is not checked."""
    sides = [(revision, path) for revision, path in ((base, one.before), (head, one.after)) if path]
    try:
        return within(FILE_LIMITS, lambda: any(_is_one(revision, path) for revision, path in sides), one.path)
    except LimitReachedError:
        return True


def _is_one(revision: Revision, path: str) -> bool:
    return looks_like_configuration(path, revision.text(path)) or _is_read(revision, path)


def _is_read(revision: Revision, path: str) -> bool:
    """Whether a file is a configuration or a launch script of some stack, though its reader may refuse it."""
    try:
        found = _reading(revision, path)
    except ConfigError as error:
        return error.of_stack
    except AsapError:
        return False
    return found is not None and bool(found.model or found.plan or found.workload.global_batch)


def _is_run(revision: Revision, path: str) -> bool:
    """Whether a file says a whole run, its model and its batch, or may say one."""
    try:
        found = within(FILE_LIMITS, lambda: _reading(revision, path), path)
    except AsapError:
        return True
    return found is None or bool(found.model and found.workload.global_batch)


def _reading(revision: Revision, path: str) -> Experiment | None:
    if not path.endswith((*SCRIPTS, *_DOCUMENTS, *LOGS)) or revision.text(path) is None:
        return None
    target, _ = revision.check_out_with_bases(path)
    found = read_configuration(target, (), Experiment(id="candidate"))
    return found if found.workload.framework is not None else None


def looks_like_configuration(path: str, text: str | None) -> bool:
    """Whether the text looks like a configuration; it need not be well-formed."""
    if text is None:
        return False
    if path.endswith(SCRIPTS):
        return read_launch(text) is not None
    keys = set(_KEY.findall(text))
    return "base_config" in keys or SCHEMA in text or len(keys & known_keys()) >= _ENOUGH_KEYS


def _including(repository: Repository, head: Revision, changed: Collection[str]) -> list[str]:
    """Files that name a changed file: as base, settings beside, model or rules, directly or through others."""
    found: dict[str, None] = {}
    tree, fresh = {*head.tree, *changed}, set(changed)
    for _ in range(_DEEPEST):
        words = {PurePosixPath(path).name for path in fresh if path.endswith((*_DOCUMENTS, *SCRIPTS))}
        named = _named(fresh)
        words |= {name for _, name in named}
        if not words:
            break
        holders = [path for path in repository.containing(head.commit, tuple(sorted(words))) if path not in found]
        fresh = {path for path in holders if path not in changed and _includes(head, path, fresh, tree, named)}
        found |= dict.fromkeys(sorted(fresh))
    return list(found)


def _named(paths: Iterable[str]) -> set[tuple[str, str]]:
    """Keys and values by which MaxText finds some of the files: ``models/acme.yml`` by ``model_name: acme``."""
    files = [PurePosixPath(path) for path in paths if path.endswith(".yml")]
    return {(_FOLDERS[file.parent.name], file.stem) for file in files if file.parent.name in _FOLDERS}


def _includes(head: Revision, path: str, files: set[str], tree: set[str], named: set[tuple[str, str]]) -> bool:
    text = head.text(path) or ""
    said = {(found[1], found[2]) for found in _NAMING.finditer(text)}
    return bool(said & named) or not files.isdisjoint(companions(path, text, tree))


def _parts(head: Revision, paths: Iterable[str]) -> set[str]:
    """The files that configurations name."""
    return {part for path in paths for part in companions(path, head.text(path) or "", head.tree)}
