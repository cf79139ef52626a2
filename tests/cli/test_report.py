import pytest

from tests.cases import kept


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


CONFIGURATION = kept(__file__)["CONFIGURATION"]


def test_chat_and_report_take_what_is_stated_of_a_run_as_analyze_does(asap, drawn, tmp_path):
    (tmp_path / "mine.yml").write_text(CONFIGURATION)
    run, page = str(tmp_path / "mine.yml"), tmp_path / "page.html"
    stated = asap("chat", run, "per_device_batch_size=4", "--hardware", "v5e-64", typed="run\n")
    assert (stated.code, "v5e-64" in stated.out) == (0, True), stated.err
    assert asap("chat", run, typed="run\n").out == stated.out
    assert asap("report", run, "--hardware", "v5e-32", "--html", str(page)).code == 0
    assert "v5e-32" in page.read_text()
