from dataclasses import dataclass

import pytest

from asap.cli import main


@dataclass
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def asap(monkeypatch, capsys, tmp_path):
    """Run the command line in a home of its own."""
    monkeypatch.setenv("ASAP_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ASAP_MODEL", raising=False)

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
