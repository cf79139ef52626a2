"""For all tests: what they start can be interrupted, also where a shell runs them in its background; no property is
refused because the machine is slow; none reads or writes the home of who runs it; files that take long go first; the
command line; and the search indexes, which are made once."""

import os
import shutil
import signal
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from asap.chat.classifier import classifier
from asap.core.locking import locked
from asap.history import index_warmup
from tests.command_line import run_command

__all__ = ["run_command"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
INDEXING_S = 600.0
EXPENSIVE = ("compiles", "process", "slow")

if "PYTEST_XDIST_WORKER" not in os.environ:  # a worker has the environment of who starts it
    HOME = tempfile.TemporaryDirectory(prefix="asap-tests-")
    os.environ["HOME"] = HOME.name
    for variable in ("ASAP_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        os.environ.pop(variable, None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with the most expensive tests go first: a long one at the end would keep all processors but one waiting."""
    marked = Counter(item.path for item in items if any(item.get_closest_marker(name) for name in EXPENSIVE))
    items.sort(key=lambda item: -marked[item.path])


@pytest.fixture(scope="session")
def indexed_home(tmp_path_factory) -> Path:
    """A home with both search indexes and the fitted classifier, nothing else: one for all processes of the run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "indexed"
    with locked(folder, "the indexes", INDEXING_S), pytest.MonkeyPatch.context() as patch:
        if not (folder / "home").exists():
            patch.setenv("ASAP_HOME", str(folder / "unfinished"))
            for variable in ("ASAP_CHROMA_URL", "ASAP_EMBEDDER"):
                patch.delenv(variable, raising=False)
            index_warmup.main()
            classifier()
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
