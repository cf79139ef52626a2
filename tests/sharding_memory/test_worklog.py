import json
import os
import signal
import string
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asap.core.errors import BadInputError, UsageError
from asap.sharding_memory import Kind, Worklog, new_session_name, read_session, sessions, verify_session
from durability import campaign

HARMLESS = st.text(string.ascii_letters + " äπ🙂\n\t\x1b", max_size=20)
PAYLOADS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | HARMLESS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=12,
)


def written(folder: Path, count: int = 3) -> Path:
    log = Worklog("s", folder)
    for number in range(count):
        log.append(Kind.TOOL_CALL, {"tool": "kpis", "number": number, "text": "é" * number})
    assert log.failed is None
    return log.path


def test_records_come_back_in_order_with_their_kind_and_time(tmp_path):
    log = Worklog("s", tmp_path)
    first = log.append(Kind.USER_INPUT, "hello")
    second = log.append(Kind.ERROR, {"message": "no"})
    assert read_session("s", tmp_path) == (first, second)
    assert [record.sequence for record in (first, second)] == [0, 1]
    assert first.time <= second.time
    assert first.time.utcoffset().total_seconds() == 0


@settings(max_examples=30)
@given(payloads=st.lists(PAYLOADS, min_size=1, max_size=5))
def test_any_payload_comes_back(tmp_path_factory, payloads):
    folder = tmp_path_factory.mktemp("log")
    log = Worklog("s", folder)
    for payload in payloads:
        log.append(Kind.NOTE, payload)
    assert log.failed is None
    assert [record.payload for record in read_session("s", folder)] == payloads
    assert verify_session("s", folder).ok


def test_each_record_is_one_readable_line(tmp_path):
    lines = written(tmp_path).read_text().splitlines()
    assert [json.loads(line)["payload"]["number"] for line in lines] == [0, 1, 2]


@pytest.mark.slow
def test_a_large_payload_is_kept(tmp_path):
    log = Worklog("s", tmp_path)
    log.append(Kind.TOOL_RESULT, "x" * 5_000_000)
    assert len(read_session("s", tmp_path)[0].payload) == 5_000_000


def test_a_new_writer_continues_the_chain(tmp_path):
    written(tmp_path)
    assert Worklog("s", tmp_path).append(Kind.NOTE, "later").sequence == 3
    assert verify_session("s", tmp_path).ok


def test_truncation_anywhere_keeps_the_whole_records(tmp_path):
    path = written(tmp_path)
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == 10]
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        kept = sum(end <= length for end in ends)
        torn = length - max((end for end in ends if end <= length), default=0)
        verdict = verify_session("s", tmp_path)
        assert (verdict.ok, verdict.records, verdict.torn_bytes) == (torn == 0 < kept, kept, torn)
        assert len(read_session("s", tmp_path)) == kept


@pytest.mark.parametrize("cut", [1, 40, 150])
def test_a_torn_tail_is_cut_and_reported(tmp_path, cut):
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:-cut])
    torn = verify_session("s", tmp_path).torn_bytes
    Worklog("s", tmp_path).append(Kind.NOTE, "after")
    records = read_session("s", tmp_path)
    assert records[-2].payload == {"event": "recovered", "bytes_cut": torn}
    assert records[-1].payload == "after"
    assert verify_session("s", tmp_path).ok


@pytest.mark.slow
@settings(max_examples=150)
@given(data=st.data())
def test_any_altered_byte_is_detected(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("log")
    path = written(folder)
    whole = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[place]))
    path.write_bytes(whole)
    verdict = verify_session("s", folder)
    assert not verdict.ok
    assert verdict.first_bad == bytes(path.read_bytes()[:place]).count(b"\n")


@pytest.mark.parametrize("order", [(0, 2), (1, 2), (0, 2, 1), (0, 0, 1, 2), (0, 1, 1)])
def test_removed_repeated_and_reordered_records_are_detected(tmp_path, order):
    path = written(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[i] for i in order))
    verdict = verify_session("s", tmp_path)
    assert not verdict.ok
    assert "removed or reordered" in verdict.reason


def test_nothing_is_appended_to_a_damaged_log(tmp_path):
    path = written(tmp_path)
    damaged = path.read_bytes().replace(b'"number":1', b'"number":7')
    path.write_bytes(damaged)
    log = Worklog("s", tmp_path)
    assert log.append(Kind.NOTE, "more") is None
    assert isinstance(log.failed, BadInputError)
    assert "record 1" in str(log.failed)
    assert path.read_bytes() == damaged


def test_a_log_that_shrinks_under_a_writer_fails(tmp_path):
    log = Worklog("s", tmp_path)
    log.append(Kind.NOTE, "one")
    log.path.write_bytes(b"")
    assert log.append(Kind.NOTE, "two") is None
    assert "removed" in str(log.failed)


def test_an_unwritable_folder_is_remembered_and_breaks_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    log = Worklog("s", tmp_path / "file" / "sessions")
    assert log.failed is None
    assert log.append(Kind.NOTE, "one") is None
    first = log.failed
    assert "ASAP_HOME" in str(first)
    assert log.append(Kind.NOTE, "two") is None
    assert log.failed is first


def test_the_home_folder_is_the_default(tmp_path, monkeypatch):
    monkeypatch.setenv("ASAP_HOME", str(tmp_path))
    Worklog("s").append(Kind.NOTE, "here")
    assert (tmp_path / "sessions" / "s.jsonl").is_file()
    assert sessions() == ("s",)


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 200, "a\n"])
def test_a_name_that_is_no_file_name_is_refused(tmp_path, name):
    with pytest.raises(UsageError):
        Worklog(name, tmp_path)


def test_fresh_names_are_valid_and_distinct(tmp_path):
    names = {new_session_name() for _ in range(20)}
    assert len(names) == 20
    assert all(Worklog(name, tmp_path) for name in names)


def test_threads_share_a_writer_without_loss(tmp_path):
    log = Worklog("s", tmp_path)
    with ThreadPoolExecutor(4) as pool:
        records = list(pool.map(lambda number: log.append(Kind.NOTE, number), range(40)))
    assert sorted(record.sequence for record in records) == list(range(40))
    assert verify_session("s", tmp_path).records == 40


WRITER = """
import sys
from pathlib import Path
from asap.sharding_memory import Kind, Worklog
log = Worklog("s", Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    log.append(Kind.NOTE, {"writer": sys.argv[2], "number": number, "text": "x" * 3000})
sys.exit(log.failed is not None)
"""


def start(folder: Path, name: str, count: int) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(folder), name, str(count)])


@pytest.mark.process
def test_processes_share_a_session_without_loss(tmp_path):
    writers = [start(tmp_path, name, 25) for name in "abcd"]
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    records = read_session("s", tmp_path)
    assert verify_session("s", tmp_path).records == 100
    for name in "abcd":
        own = [record.payload["number"] for record in records if record.payload["writer"] == name]
        assert own == list(range(25))


def test_a_killed_writer_leaves_a_log_that_goes_on(tmp_path):
    writer = start(tmp_path, "a", 100_000)
    path = tmp_path / "s.jsonl"
    while not path.exists() or path.stat().st_size < 20_000:
        assert writer.poll() is None
        time.sleep(0.01)
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    log = Worklog("s", tmp_path)
    log.append(Kind.NOTE, "after the crash")
    assert log.failed is None
    assert verify_session("s", tmp_path).ok
    assert read_session("s", tmp_path)[-1].payload == "after the crash"


@pytest.mark.process
def test_nothing_acknowledged_is_lost_and_nothing_breaks():
    counts = campaign(kills=30, index=False)
    assert [one for one in counts if not one.ok] == []
    assert [one.name for one in counts if not one.acknowledged] == ["read-only"]
