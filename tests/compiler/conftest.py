import shutil
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent.parent / "data" / "hlo"


@pytest.fixture
def program():
    """The text of a compiled program that is kept with the tests."""
    return lambda name: (PROGRAMS / f"{name}.hlo").read_text(encoding="utf-8")


@pytest.fixture
def home(tmp_path, monkeypatch, indexed_home):
    """A home of its own."""
    monkeypatch.setenv("ASAP_HOME", str(folder := shutil.copytree(indexed_home, tmp_path / "home")))
    return folder
