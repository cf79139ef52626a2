import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import AsapError, BadInputError, NotFoundError, ServiceError
from asap.core.files import (
    data_folder,
    exists,
    home,
    is_file,
    read_json_lines,
    scratch_folder,
    user_path,
    write_atomically,
    write_output,
)
from asap.core.locking import locked
from tests.cases import kept


def test_home_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("ASAP_HOME", str(tmp_path))
    assert home() == tmp_path


def test_a_write_replaces_the_whole_file_and_leaves_nothing_else(tmp_path):
    target = tmp_path / "new" / "file.txt"
    write_atomically(target, "first, and longer")
    write_atomically(target, "second")
    assert target.read_text() == "second"
    assert [path.name for path in target.parent.iterdir()] == ["file.txt"]


def test_an_output_takes_the_place_of_what_a_link_leads_to_and_keeps_its_mode(tmp_path):
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    page.write_text("before")
    page.chmod(0o640)
    link.symlink_to(page)
    write_output(link, "after")
    assert (page.read_text(), page.stat().st_mode & 0o777, link.is_symlink()) == ("after", 0o640, True)
    write_output(Path(os.devnull), "to a device")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.html", "page.html"]


def test_an_output_that_does_not_fit_leaves_what_was_there(tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    write_output(page, "before")
    monkeypatch.setattr("os.fsync", lambda file: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(AsapError, match="No space left"):
        write_output(page, "after")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


def test_an_unwritable_folder_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(AsapError, match="ASAP_HOME"):
        write_atomically(tmp_path / "file" / "x", "text")


def test_the_package_finds_its_data():
    assert data_folder("knowledge").is_dir()


def test_a_scratch_folder_of_a_killed_process_is_removed_later_and_one_in_use_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    script = "from asap.core.files import scratch_folder\nimport os\nwith scratch_folder('t') as f: "
    subprocess.run([sys.executable, "-c", script + "os.kill(os.getpid(), 9)"], check=False)
    (left,) = tmp_path.iterdir()
    for old in (left, tmp_path / "asap-scratch-file"):
        old.touch()
        os.utime(old, (0, 0))
    with scratch_folder("used") as used:
        assert not left.exists()
        os.utime(used, (0, 0))
        with scratch_folder("more"):
            assert used.exists()
    assert [one.name for one in tmp_path.iterdir()] == ["asap-scratch-file"]


@pytest.mark.parametrize("text", ["9" * 5000, "a/" + "b" * 300, "\x00", "~nobody-of-this-name/x", "a\ud800b"])
def test_a_name_that_no_file_has_leads_nowhere(text):
    path = user_path(text)
    assert not exists(path)
    assert not is_file(path)


def test_a_home_is_expanded_and_a_folder_is_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_path("~/x") == tmp_path / "x"
    assert exists(Path(tmp_path))
    assert not is_file(Path(tmp_path))


@given(st.lists(st.text(alphabet="a\u2028\u2029\x85\x0b\x1c\r é", min_size=1)))
def test_only_a_newline_ends_a_line(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "file.jsonl"
    path.write_bytes("\n".join(lines).encode())
    assert [text for _, text in read_json_lines(path)] == [line for line in lines if line.strip()]


def test_places_count_blank_lines_too(tmp_path):
    path = tmp_path / "file.jsonl"
    path.write_text('{}\n\n{"a": 1}\n')
    assert [place.rpartition(":")[2] for place, _ in read_json_lines(path)] == ["1", "3"]


def test_what_cannot_be_read_says_why(tmp_path):
    with pytest.raises(NotFoundError, match="no such file"):
        list(read_json_lines(tmp_path / "missing"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInputError, match="as text"):
        list(read_json_lines(tmp_path / "binary"))


HOLDER = kept(__file__)["HOLDER"]


def test_a_second_process_waits_and_then_says_who_is_in_the_way(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(ServiceError, match="another process is writing the history"),
            locked(tmp_path, "the history", 0.1),
        ):
            pass
        holder.communicate("\n")
    with locked(tmp_path, "the history"):
        pass


def test_a_full_or_read_only_folder_is_told_with_what_to_do(tmp_path):
    with pytest.raises(BadInputError, match="ASAP_HOME"), locked(tmp_path / "made", "it"):
        raise OSError(28, "No space left on device")
    (tmp_path / "file").touch()
    with pytest.raises(BadInputError), locked(tmp_path / "file" / "below", "it"):
        pass
