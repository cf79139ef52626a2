"""Real repositories that tests fill."""

import os
import subprocess
from pathlib import Path

from asap.ci.check import Options, check
from asap.ci.report import CiReport
from asap.ci.source.git import Repository
from tests.cases import kept

CONFIG = kept(__file__)["CONFIG"]
TENSOR = CONFIG.replace("ici_fsdp_parallelism: 256", "ici_fsdp_parallelism: 32\nici_tensor_parallelism: 8")
PERSON = {
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull,
}  # fmt: skip


class Scratch:
    """A real repository that a test fills."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", ".")

    def git(self, *arguments: str) -> str:
        command = ["git", "-c", "protocol.file.allow=always", *arguments]
        done = subprocess.run(command, cwd=self.folder, env=os.environ | PERSON, capture_output=True, check=True)
        return done.stdout.decode().strip()

    def make_tree(self, entry: str) -> str:
        """A tree that git itself would not make."""
        command = ["git", "hash-object", "-t", "tree", "-w", "--stdin", "--literally"]
        facts, _, name = entry.partition("\t")
        mode, _, object_name = facts.split()
        raw = f"{mode.lstrip('0')} {name}\0".encode() + bytes.fromhex(object_name)
        return (
            subprocess.run(command, cwd=self.folder, input=raw, capture_output=True, check=True).stdout.decode().strip()
        )

    def write(self, path: str, content: str | bytes) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, **files: str | bytes) -> str:
        for path, content in files.items():
            self.write(path, content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "step")
        return self.git("rev-parse", "HEAD")

    def check(self, base: str, head: str, options: Options | None = None, experiments=None):
        report = check(Repository(self.folder), base, head, options or Options(), experiments)
        assert CiReport.model_validate_json(report.to_json()) == report
        return report

    def change(self, options: Options | None = None, experiments=None, **files: str | bytes):
        """Commit files, and check the commit against the one before."""
        self.commit(**files)
        return self.check("HEAD~1", "HEAD", options, experiments)
