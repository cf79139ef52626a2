"""The command line in tests: in this process, or as a process of its own."""

import gc
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from asap.cli import main

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
        finally:
            gc.unfreeze()
            gc.enable()
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def asap(run_command, monkeypatch, tmp_path) -> Callable[..., Done]:
    """Run the command line in a home of its own, with the built-in model."""
    monkeypatch.setenv("ASAP_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ASAP_MODEL", raising=False)
    return run_command


def run_process(*arguments: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
    """Run the command line as a process, with what is typed as its standard input."""
    command = [sys.executable, "-c", MAIN, *arguments]
    return subprocess.run(command, input=typed, capture_output=True, text=True, check=False)
