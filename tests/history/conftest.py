import pytest

from asap.history import HistoryRecord


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home of its own, no server, no foreign embedder."""
    folder = tmp_path / "home"
    monkeypatch.setenv("ASAP_HOME", str(folder))
    for variable in ("ASAP_CHROMA_URL", "ASAP_EMBEDDER", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    return folder


@pytest.fixture
def record():
    """Makes records that differ in what is given."""

    def make(id_="mine", **fields):
        told = {
            "title": "a run",
            "before": {"ici": {"model": 8, "data": 2}},
            "after": {"ici": {"model": 4, "data": 4}},
            "outcome": "improved",
            "speedup": 1.25,
            "summary": "It got faster.",
            "source": {"text": "a colleague"},
            "confidence": 0.8,
        }
        return HistoryRecord.model_validate({"id": id_, **told, **fields})

    return make
