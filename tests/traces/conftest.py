import json
import os
from pathlib import Path

import pytest
from made_runs import Run, simulate

from asap.traces.recording import load_trace

ROOT = Path(__file__).resolve().parents[2]
TRACES = Path(os.environ.get("ASAP_TEST_TRACES", ROOT.parent / "shared" / "traces"))
PROFILES = Path(os.environ.get("ASAP_TEST_PROFILES", ROOT.parent / "shared" / "profiles"))


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


@pytest.fixture
def events():
    return simulate(Run(slow=(1.0,)))[0]


@pytest.fixture
def read(tmp_path):
    """Read one document, given as text, bytes or plain data."""

    def read_document(document, name="rank0.json"):
        text = document if isinstance(document, str | bytes) else json.dumps(document)
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_trace([file])

    return read_document
