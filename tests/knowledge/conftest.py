import pytest

from asap.core.files import data_folder
from tests.homes import home

__all__ = ["few_notes", "home"]


@pytest.fixture
def few_notes(tmp_path, monkeypatch):
    """Three files of the bundled notes in place of all: quicker to index."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("roofline.md", "training.md", "jax-stuff.md"):
        folder.joinpath(name).write_bytes((data_folder("knowledge") / name).read_bytes())
    monkeypatch.setattr("asap.knowledge.notes.corpus.data_folder", lambda name: folder)
    return folder
