"""The command line in tests: in this process, or as a process of its own."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from asap.cli import main
from asap.history import index_warmup

MAIN = "from asap.cli import main; main()"


@dataclass(frozen=True)
class Done:
    """What a command left."""

    code: int
    out: str
    err: str


@pytest.fixture
def run_command(monkeypatch, capsys) -> Callable[..., Done]:
    """Run the command line in this process."""

    def run(*arguments: str) -> Done:
        monkeypatch.setattr("sys.argv", ["asap", *arguments])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def indexed_home(tmp_path_factory) -> Path:
    """A home with both search indexes and nothing else."""
    home = tmp_path_factory.mktemp("indexed") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASAP_HOME", str(home))
        index_warmup.main()
    return home


@pytest.fixture
def asap(run_command, monkeypatch, tmp_path, indexed_home) -> Callable[..., Done]:
    """Run the command line in a home of its own, with the built-in model."""
    monkeypatch.setenv("ASAP_HOME", str(shutil.copytree(indexed_home, tmp_path / "home")))
    monkeypatch.delenv("ASAP_MODEL", raising=False)
    return run_command


def run_process(*arguments: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
    """Run the command line as a process, with what is typed as its standard input."""
    command = [sys.executable, "-c", MAIN, *arguments]
    return subprocess.run(command, input=typed, capture_output=True, text=True, check=False)
