import json
import subprocess
import sys

import pytest

from asap.core.errors import BadInputError, NotFoundError
from asap.core.stores import StoreWarning
from asap.history import add, export_records, get_record, import_records, list_records
from asap.history.files import line_of, load_records
from tests.cases import kept


def test_the_same_facts_are_added_once_whoever_tells_them(record):
    assert add(record("mine")).added == ("mine",)
    again = add(record("yours", title="told otherwise", summary="in other words", confidence=0.5))
    assert (again.added, again.known) == ((), ("mine",))
    assert get_record("mine").origin == "user"


def test_an_id_stands_for_one_set_of_facts(record):
    add(record("mine"))
    with pytest.raises(BadInputError, match="mine: the ID is taken"):
        add(record("other", speedup=2.0), record("mine", speedup=3.0))
    assert [one.id for one in list_records() if one.origin == "user"] == ["mine"]


def test_keys_do_not_get_into_the_history(record, home):
    add(record("mine", summary="with hf_abcdefghijklmnopqrstuvwxyz", title="token=secretsecret on v5p"))
    written = (home / "history" / "records.jsonl").read_text()
    assert "hf_abcdef" not in written
    assert "secretsecret" not in written


def test_what_is_exported_is_what_is_imported(record, tmp_path, monkeypatch):
    add(record("mine", other_changes=("remat",)), record("slow", outcome="slower", speedup=0.5))
    assert export_records(tmp_path / "out.jsonl") == len(list_records())
    monkeypatch.setenv("ASAP_HOME", str(tmp_path / "other"))
    assert set(import_records(tmp_path / "out.jsonl").added) == {"mine", "slow"}
    assert import_records(tmp_path / "out.jsonl").added == ()


def test_an_import_is_all_or_nothing_and_names_the_line(record, tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text(line_of(record("good")) + "\n\n" + json.dumps({"id": "bad"}) + "\n")
    with pytest.raises(BadInputError, match=r"in\.jsonl:3: is not a record: title: Field required"):
        import_records(path)
    assert not [one for one in list_records() if one.origin == "user"]


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[]", b"null", b'{"id": "a'])
def test_what_is_no_record_is_refused(tmp_path, content):
    (tmp_path / "in.jsonl").write_bytes(content)
    with pytest.raises(BadInputError):
        import_records(tmp_path / "in.jsonl")


def test_what_is_not_there_is_said_so(tmp_path):
    with pytest.raises(NotFoundError):
        import_records(tmp_path / "none.jsonl")
    with pytest.raises(NotFoundError, match="no-such"):
        get_record("no-such")


def test_a_damaged_file_of_ones_own_is_named_with_its_line(record, home):
    add(record("mine"))
    path = home / "history" / "records.jsonl"
    path.write_text(path.read_text() + "half a li")
    with pytest.warns(StoreWarning, match=r"records\.jsonl:2"):
        assert "mine" in {known.id for known in list_records()}
    with pytest.raises(BadInputError, match=r"records\.jsonl:2"):
        add(record("other"))


WRITER = kept(__file__)["WRITER"]


@pytest.mark.process
def test_no_record_is_lost_between_processes(home):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(number)]) for number in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert len([one for one in load_records() if one.origin == "user"]) == 30


def test_a_line_separator_in_a_title_does_not_end_the_record(record):
    add(record("mine", title="tried\u2028twice\x85over"))
    (mine,) = [found for found in load_records() if found.id == "mine"]
    assert "twice" in mine.title
