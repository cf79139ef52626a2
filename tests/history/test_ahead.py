import os
import subprocess
import sys
import time

import pytest

from asap.history import HistoryQuery, search_history
from asap.history.ahead import indexes_written_ahead
from asap.knowledge import generation, search_knowledge
from asap.knowledge.place import SERVER, store_root


def test_both_indexes_are_written_while_something_else_is_done():
    with indexes_written_ahead():
        deadline = time.monotonic() + 60
        while len(_collections()) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
    assert {name.partition("-")[0] for name in _collections()} == {"knowledge", "history"}


def test_a_search_meanwhile_finds_what_a_later_one_finds():
    with indexes_written_ahead():
        notes, records = search_knowledge("all-gather"), search_history(HistoryQuery(text="all-gather"))
    assert (notes, records) == (search_knowledge("all-gather"), search_history(HistoryQuery(text="all-gather")))


def test_nothing_goes_on_where_the_context_was_left_early():
    with pytest.raises(KeyError), indexes_written_ahead():
        raise KeyError
    assert not _children()


def test_no_process_is_started_where_a_store_or_a_server_is_there(monkeypatch):
    with monkeypatch.context() as context:
        context.setenv(SERVER, "http://localhost:1")
        with indexes_written_ahead():
            assert not _children()
    store_root().mkdir(parents=True)
    with indexes_written_ahead():
        assert not _children()


def _collections() -> dict[str, str]:
    folder = generation.current(store_root())
    return generation.collections(folder) if folder else {}


def _children() -> list[str]:
    if not sys.platform.startswith("linux"):
        pytest.skip("ps is asked as on Linux")
    found = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "args="], capture_output=True, text=True)
    return [line for line in found.stdout.splitlines() if "asap.history.ahead" in line]
