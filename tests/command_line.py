"""The command line in tests: in this process, or as a process of its own."""

import io
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
    """Run the command line in this process, with what is typed as its standard input."""

    def run(*arguments: str, typed: str = "") -> Done:
        monkeypatch.setattr("sys.argv", ["asap", *arguments])
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


def run_process(*arguments: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
    """Run the command line as a process, with what is typed as its standard input."""
    command = [sys.executable, "-c", MAIN, *arguments]
    return subprocess.run(command, input=typed, capture_output=True, text=True, check=False)
