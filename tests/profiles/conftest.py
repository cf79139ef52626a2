import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("ASAP_TEST_PROFILES", ROOT.parent / "shared" / "profiles"))


@pytest.fixture
def recorded() -> Path:
    """The run that scripts/record_run.py recorded on eight virtual CPU devices."""
    return ROOT / "asap" / "experiments" / "bundled" / "cpu-8dev"


@pytest.fixture
def shared():
    """Find a real profile by the name of its folder, or skip."""

    def find(name: str) -> Path:
        found = sorted(SHARED.glob(f"{name}/*.xplane.pb"))
        if not found:
            pytest.skip(f"no profile {name} here")
        return found[0]

    return find


@pytest.fixture
def write(tmp_path):
    """Write a profile into a run folder of a log directory."""

    def write_file(data: bytes, run: str = "2026_01_01_00_00_00", host: str = "host", log: str = "log") -> Path:
        folder = tmp_path / log / "plugins" / "profile" / run
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{host}.xplane.pb"
        file.write_bytes(data)
        return file

    return write_file
