"""Commits, trees and blobs read with ``git``, which runs nothing else and stays off the network.

The repository is not trusted: no hook, filter, external diff, textconv, pager or file-system monitor runs, no
configuration of the user or the system is read, nothing is fetched, and only objects are read, never the work tree.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from asap.core.errors import AsapError, BadInputError, NotFoundError, ServiceError
from asap.core.text import plain

TIMEOUT_S = 120.0
_INVALID_PATH_PARTS = {b"", b".", b"..", b".git"}
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.quotePath=false",
    "core.commitGraph=false",
    "protocol.allow=never",
    "submodule.recurse=false",
    "safe.directory=*",
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


@dataclass(frozen=True)
class Entry:
    """A file of a tree: its mode (``100644``, ``120000`` a symbolic link, ``160000`` a submodule) and its object."""

    mode: str
    object: str

    @property
    def is_file(self) -> bool:
        """Whether it is an ordinary file."""
        return self.mode in ("100644", "100755")


class Repository:
    """A Git repository, read object by object.

    Args:
        folder: somewhere inside its work tree, or the bare repository.

    Raises:
        NotFoundError: there is no repository, or no git.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        if self._run("rev-parse", "--git-dir").returncode:
            raise NotFoundError("is not inside a git repository", where=str(folder))

    def work_tree_around(self, path: Path) -> Path | None:
        """The top of the work tree if a path lies in it."""
        found = self._run("rev-parse", "--show-toplevel")
        top = Path(os.fsdecode(found.stdout.rstrip(b"\n"))) if found.returncode == 0 else None
        return top if top is not None and path.resolve().is_relative_to(top.resolve()) else None

    def commit(self, reference: str) -> str:
        """The commit that a branch, tag or hash names.

        Raises:
            NotFoundError: there is none here, as after a force push or in a shallow clone; with what to fetch.
        """
        found = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}")
        if found.returncode:
            branch = plain(reference, 80).removeprefix("origin/")
            hint = f"git fetch origin {branch}; after a force push, name the branch instead"
            raise NotFoundError("no such commit in this clone", where=plain(reference, 80) or "(empty)", hint=hint)
        return found.stdout.decode().strip()

    def merge_base(self, base: str, head: str) -> str:
        """The best common ancestor of two commits.

        Raises:
            BadInputError: there is none, or it lies beyond the end of a shallow clone.
        """
        found = self._run("merge-base", base, head)
        if found.returncode == 0:
            return found.stdout.decode().split()[0]
        where = f"{base[:12]}...{head[:12]}"
        if self._output("rev-parse", "--is-shallow-repository").strip() == b"true":
            hint = "git fetch --unshallow, or fetch-depth: 0 for actions/checkout"
            raise BadInputError("the clone is shallow and does not reach the common ancestor", where=where, hint=hint)
        raise BadInputError("the two commits have no common ancestor", where=where, hint="compare related branches")

    def tree(self, commit: str) -> dict[str, Entry]:
        """All files of a commit by path; submodules are entries of their own and are not entered.

        A hand-made tree can hold paths that no work tree can, such as ``../x``; they are left out.
        """
        entries = {}
        for record in self._output("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
            facts, tab, path = record.partition(b"\t")
            if tab and not _INVALID_PATH_PARTS & set(path.split(b"/")):
                mode, _, name = facts.decode().split()
                entries[os.fsdecode(path)] = Entry(mode, name)
        return entries

    def renames(self, before: str, after: str) -> dict[str, str]:
        """New path → old path of files that were moved between two commits."""
        options = ("-r", "-z", "-M", "--raw", "--no-ext-diff", "--no-textconv", "--diff-filter=R")
        fields = self._output("diff-tree", *options, before, after).split(b"\0")
        return {os.fsdecode(fields[i + 2]): os.fsdecode(fields[i + 1]) for i in range(0, len(fields) - 2, 3)}

    def blob(self, name: str, limit: int) -> bytes:
        """The first ``limit + 1`` bytes of an object."""
        command = self._command("cat-file", "blob", name)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment()) as git:
            assert git.stdout is not None
            content = git.stdout.read(limit + 1)
            if len(content) > limit:
                git.kill()
                return content
        if git.returncode:
            hint = "the clone may be partial: git fetch --refetch --no-filter"
            raise NotFoundError("this object is not in the clone", where=name[:12], hint=hint)
        return content

    def containing(self, commit: str, words: tuple[str, ...]) -> list[str]:
        """Paths of the text files of a commit that contain any of the words."""
        options = ("-l", "-z", "-I", "-F", "--full-name", "--no-textconv", "--no-color", "--no-recurse-submodules")
        found = self._run("grep", *options, "-f", "-", commit, "--", stdin=os.fsencode("\n".join(words)))
        paths = found.stdout.split(b"\0") if found.returncode == 0 else []
        return [os.fsdecode(path.partition(b":")[2]) for path in paths if path]

    def _output(self, *arguments: str) -> bytes:
        done = self._run(*arguments)
        if done.returncode:
            raise AsapError(f"git {arguments[0]} failed: {plain(done.stderr.decode(errors='replace'), 200)}")
        return done.stdout

    def _run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = self._command(*arguments)
        try:
            return subprocess.run(
                command, input=stdin, capture_output=True, env=_environment(), timeout=TIMEOUT_S, check=False
            )
        except FileNotFoundError as error:
            raise NotFoundError("git is not installed", where="git") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ServiceError(f"git {arguments[0]} did not finish: {type(error).__name__}") from error

    def _command(self, *arguments: str) -> list[str]:
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        return ["git", "--no-pager", "--no-replace-objects", "-C", str(self._folder), *settings, *arguments]


def _environment() -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return inherited | _ENVIRONMENT
