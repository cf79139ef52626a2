import pytest

from asap.core.files import data_folder


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home of its own, no server, no foreign embedder."""
    folder = tmp_path / "home"
    monkeypatch.setenv("ASAP_HOME", str(folder))
    for variable in ("ASAP_CHROMA_URL", "ASAP_EMBEDDER", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    return folder


@pytest.fixture
def few_notes(tmp_path, monkeypatch):
    """Three files of the bundled notes in place of all: quicker to index."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("roofline.md", "training.md", "jax-stuff.md"):
        folder.joinpath(name).write_bytes((data_folder("knowledge") / name).read_bytes())
    monkeypatch.setattr("asap.knowledge.notes.corpus.data_folder", lambda name: folder)
    return folder
