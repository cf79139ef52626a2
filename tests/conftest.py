"""For all tests: what they start can be interrupted, also where a shell runs them in its background; no property is
refused because the machine is slow; the command line; and the search indexes, which are made once."""

import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from asap.core.locking import locked
from asap.history import index_warmup
from tests.command_line import run_command

__all__ = ["run_command"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
INDEXING_S = 600.0


@pytest.fixture(scope="session")
def indexed_home(tmp_path_factory) -> Path:
    """A home with both search indexes and nothing else: one for all processes of the run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "indexed"
    with locked(folder, "the indexes", INDEXING_S), pytest.MonkeyPatch.context() as patch:
        if not (folder / "home").exists():
            patch.setenv("ASAP_HOME", str(folder / "unfinished"))
            for variable in ("ASAP_CHROMA_URL", "ASAP_EMBEDDER"):
                patch.delenv(variable, raising=False)
            index_warmup.main()
            (folder / "unfinished").rename(folder / "home")
    return folder / "home"


@pytest.fixture(scope="session")
def shared_home(indexed_home, tmp_path_factory) -> Path:
    """One home for all tests of a process that need no other."""
    return shutil.copytree(indexed_home, tmp_path_factory.mktemp("shared") / "home")


@pytest.fixture
def asap(run_command, monkeypatch, tmp_path, indexed_home):
    """Run the command line in a home of its own, with the built-in model."""
    monkeypatch.setenv("ASAP_HOME", str(shutil.copytree(indexed_home, tmp_path / "home")))
    monkeypatch.delenv("ASAP_MODEL", raising=False)
    return run_command
