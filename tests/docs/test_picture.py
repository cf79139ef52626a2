import pytest

from documentation.generated import PICTURE, draw


@pytest.mark.slow
def test_the_picture_is_of_the_report_as_it_is_now(tmp_path, monkeypatch):
    monkeypatch.setenv("ASAP_HOME", str(tmp_path))
    monkeypatch.delenv("ASAP_MODEL", raising=False)
    assert draw() == PICTURE.read_text(encoding="utf-8"), "scripts/docs update draws it anew"
