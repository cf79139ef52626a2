import os
import subprocess
import sys
from pathlib import Path

import pytest

from asap.core.errors import AsapError
from asap.core.files import data_folder, home, scratch_folder, write_atomically, write_output


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
