import pytest

from asap.core.errors import AsapError
from asap.core.files import data_folder, home, write_atomically


def test_home_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("ASAP_HOME", str(tmp_path))
    assert home() == tmp_path


def test_a_write_replaces_the_whole_file_and_leaves_nothing_else(tmp_path):
    target = tmp_path / "new" / "file.txt"
    write_atomically(target, "first, and longer")
    write_atomically(target, "second")
    assert target.read_text() == "second"
    assert [path.name for path in target.parent.iterdir()] == ["file.txt"]


def test_an_unwritable_folder_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(AsapError, match="ASAP_HOME"):
        write_atomically(tmp_path / "file" / "x", "text")


def test_the_package_finds_its_data():
    assert data_folder("knowledge").is_dir()
