import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from asap.cli import main

ROOT = Path(__file__).resolve().parents[2]
TRACES = Path(os.environ.get("ASAP_TEST_TRACES", ROOT.parent / "shared" / "traces"))
PROFILES = Path(os.environ.get("ASAP_TEST_PROFILES", ROOT.parent / "shared" / "profiles"))


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def asap(monkeypatch, capsys, tmp_path):
    """Run the command line in a home of its own."""
    monkeypatch.setenv("ASAP_HOME", str(tmp_path / "home"))

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


@pytest.fixture
def real():
    """Find a real trace by its path under the folder of traces, or skip."""
    return lambda name: _found(TRACES / name)


@pytest.fixture
def real_profile():
    """Find a real XPlane file by the name of its folder, or skip."""

    def find(name: str) -> Path:
        files = sorted((PROFILES / name).glob("*.xplane.pb"))
        return _found(files[0] if files else PROFILES / name)

    return find


def _found(path: Path) -> Path:
    if not path.exists():
        pytest.skip(f"no {path.name} here")
    return path
