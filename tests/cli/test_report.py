import pytest


@pytest.fixture
def drawn():
    pytest.importorskip("vl_convert")


def test_a_report_is_of_the_latest_analysis_or_makes_one(asap, drawn, tmp_path):
    first = asap("report", "cpu-8dev", "--html", str(tmp_path / "first.html"))
    assert first.code == 0, first.err
    asap("analyze", "cpu-8dev", "--session", "mine", "--html", str(tmp_path / "second.html"), "--format", "json")
    asap("report", "cpu-8dev", "--html", str(tmp_path / "third.html"))
    assert (tmp_path / "second.html").read_text() == (tmp_path / "third.html").read_text()
    assert "asap sessions verify mine" in (tmp_path / "third.html").read_text()
    assert "asap sessions verify mine" not in (tmp_path / "first.html").read_text()


def test_a_report_that_cannot_be_made_says_why(asap, drawn, tmp_path):
    assert asap("report", "nosuch").code == 3
    done = asap("report", "cpu-8dev", "--html", str(tmp_path / "no" / "such.html"))
    assert done.code == 4
    assert "such.html: cannot be written" in done.err
