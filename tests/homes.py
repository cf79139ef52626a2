"""Homes of tests."""

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home of its own, no server, no foreign embedder."""
    folder = tmp_path / "home"
    monkeypatch.setenv("ASAP_HOME", str(folder))
    for variable in ("ASAP_CHROMA_URL", "ASAP_EMBEDDER", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    return folder
