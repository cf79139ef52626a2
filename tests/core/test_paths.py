"""Paths that strangers write: names that no file can have."""

from pathlib import Path

import pytest

from asap.core.files import exists, is_file, user_path


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
