import os
import subprocess
import sys
import time

import pytest

from asap.history import HistoryQuery, search_history
from asap.history.index_warmup import warm_up_indexes
from asap.knowledge import search_knowledge
from asap.knowledge.paths import SERVER, store_folder
from asap.knowledge.store import generation

pytestmark = pytest.mark.process


def test_both_indexes_are_written_while_something_else_is_done():
    with warm_up_indexes():
        deadline = time.monotonic() + 60
        while len(_collections()) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
    assert {name.partition("-")[0] for name in _collections()} == {"knowledge", "history"}


def test_a_search_meanwhile_finds_what_a_later_one_finds():
    with warm_up_indexes():
        notes, records = search_knowledge("all-gather"), search_history(HistoryQuery(text="all-gather"))
    assert (notes, records) == (search_knowledge("all-gather"), search_history(HistoryQuery(text="all-gather")))


def test_nothing_goes_on_where_the_context_was_left_early():
    with pytest.raises(KeyError), warm_up_indexes():
        raise KeyError
    assert not _children()


def test_no_process_is_started_where_a_store_or_a_server_is_there(monkeypatch):
    with monkeypatch.context() as context:
        context.setenv(SERVER, "http://localhost:1")
        with warm_up_indexes():
            assert not _children()
    store_folder().mkdir(parents=True)
    with warm_up_indexes():
        assert not _children()


def _collections() -> dict[str, str]:
    folder = generation.in_use(store_folder())
    return generation.collections(folder) if folder else {}


def _children() -> list[str]:
    if not sys.platform.startswith("linux"):
        pytest.skip("ps is asked as on Linux")
    found = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "args="], capture_output=True, text=True)
    return [line for line in found.stdout.splitlines() if "asap.history.index_warmup" in line]
