"""The store on disk: every kind of damage, other processes, and what a killed writer leaves."""

import json
import os
import shutil
import subprocess
import sys
import warnings

import pytest

from asap.knowledge import StoreWarning, ingest, rebuild, search_knowledge
from asap.knowledge.store.access import _close_all
from tests.cases import kept

pytestmark = pytest.mark.slow

QUERY = "critical batch size of fully sharded data parallelism"


@pytest.fixture(autouse=True)
def _few(few_notes):
    """Search over a part of the notes."""


@pytest.fixture(params=["exact", "graph"])
def leg(request, monkeypatch):
    """Search a small collection exactly, or through Chroma as a large one."""
    if request.param == "graph":
        monkeypatch.setattr("asap.knowledge.index.hybrid.SMALL", 0)
    return request.param


@pytest.fixture
def expected(home):
    """The right answer, from a store that was then closed."""
    found = ids()
    assert found
    _close_all()
    return found


def ids(query=QUERY):
    return [hit.note.id for hit in search_knowledge(query)]


def generation(home):
    return home / "chroma" / (home / "chroma" / "current").read_text()


def segment(home):
    return next(path.parent for path in generation(home).rglob("header.bin"))


def truncate(path, keep=0.5):
    os.truncate(path, int(path.stat().st_size * keep))


def foreign_vectors(home):
    import chromadb

    client = chromadb.PersistentClient(generation(home))
    collection = client.list_collections()[0]
    vector = [1.0] * len(collection.peek(1)["embeddings"][0])
    collection.upsert(ids=["intruder"], embeddings=[vector], documents=["obey me"])
    client.close()


def foreign_embedder(home):
    import chromadb

    client = chromadb.PersistentClient(generation(home))
    name = client.list_collections()[0].name
    client.delete_collection(name)
    client.create_collection(name, embedding_function=None).add(ids=["x"], embeddings=[[1.0, 0.0]])
    client.close()


DAMAGE = {
    "truncated sqlite": lambda home: truncate(generation(home) / "chroma.sqlite3"),
    "sqlite without its last page": lambda home: truncate(generation(home) / "chroma.sqlite3", 0.99),
    "sqlite of garbage": lambda home: (generation(home) / "chroma.sqlite3").write_bytes(b"garbage" * 1000),
    "no sqlite": lambda home: (generation(home) / "chroma.sqlite3").unlink(),
    "no index folder": lambda home: shutil.rmtree(segment(home)),
    "truncated header": lambda home: truncate(segment(home) / "header.bin"),
    "zeroed header": lambda home: (segment(home) / "header.bin").write_bytes(bytes(100)),
    "truncated vectors": lambda home: truncate(segment(home) / "data_level0.bin"), "foreign vectors": foreign_vectors,
    "truncated word index": lambda home: truncate(next(generation(home).glob("knowledge-*.sqlite"))),
    "no manifest": lambda home: (generation(home) / "manifest.json").unlink(),
    "manifest of garbage": lambda home: (generation(home) / "manifest.json").write_text("[1]"),
}  # fmt: skip
UNSAID = {
    "no generation": lambda home: shutil.rmtree(generation(home)),
    "no pointer": lambda home: (home / "chroma" / "current").unlink(),
    "pointer out of the store": lambda home: (home / "chroma" / "current").write_text("../../etc"),
    "no store": lambda home: shutil.rmtree(home / "chroma"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_said_and_repaired(kind, leg, home, expected):
    DAMAGE[kind](home)
    with pytest.warns(StoreWarning, match="damaged .* and is rebuilt"):
        assert ids() == expected
    _close_all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ids() == expected


@pytest.mark.parametrize("kind", UNSAID)
def test_what_is_missing_is_made(kind, home, expected):
    UNSAID[kind](home)
    assert ids() == expected


def test_a_foreign_embedder_in_our_collection_is_thrown_out(leg, home, expected, tmp_path):
    foreign_embedder(home)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        assert ids() == expected
    _close_all()
    foreign_embedder(home)
    (tmp_path / "new.md").write_text("# New\n\nZorblax meshes fold.\n")
    ingest(tmp_path / "new.md")
    with pytest.warns(StoreWarning, match="is rebuilt"):
        assert ids("zorblax meshes")[0] == "new/new#new.1"
    assert ids() == expected


def test_a_damaged_excerpt_is_repaired(home, expected):
    truncate(next(generation(home).glob("knowledge-*.npz")))
    with pytest.warns(StoreWarning, match="npz has changed"):
        assert ids() == expected


def test_exact_and_graph_search_agree(home, expected, monkeypatch):
    queries = [QUERY, "arithmetic intensity of a matmul", "jit and shard_map", "gradient all-reduce across pods"]
    exact = [search_knowledge(query, 10) for query in queries]
    assert list(generation(home).glob("*.npz"))
    monkeypatch.setattr("asap.knowledge.index.hybrid.SMALL", 0)
    rebuild()
    assert not list(generation(home).glob("*.npz"))
    assert [search_knowledge(query, 10) for query in queries] == exact


def test_a_small_search_does_not_wait_for_chroma(home, expected, few_notes):
    code = (
        "import pathlib, sys, asap.knowledge.notes.corpus as corpus\n"
        "corpus.data_folder = lambda name: pathlib.Path(sys.argv[1])\n"
        "from asap.knowledge import search_knowledge\n"
        "assert search_knowledge('FSDP') and 'chromadb' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(few_notes)], check=True)


def test_a_store_that_breaks_while_it_is_open_is_reopened(leg, home, expected):
    assert ids() == expected
    shutil.rmtree(generation(home))
    assert ids() == expected


def test_reading_does_not_change_the_store(leg, home, expected):
    name = generation(home).name
    for _ in range(3):
        assert ids() == expected
        _close_all()
    assert generation(home).name == name


def test_what_a_killed_writer_left_is_cleared(home, expected):
    left = home / "chroma" / ("0" * 32)
    left.mkdir()
    (left / "chroma.sqlite3").write_text("half")
    rebuild()
    assert not left.exists()
    assert ids() == expected


def test_old_generations_do_not_pile_up(home, expected):
    for _ in range(4):
        rebuild()
    assert len([path for path in (home / "chroma").iterdir() if path.is_dir()]) == 2


def test_a_changed_note_is_found_at_once(few_notes, home, expected):
    path = few_notes / "training.md"
    path.write_text(
        path.read_text() + path.read_text().split("\n## ")[1].join(["\n## ", ""]).replace("id: ", "id: new-")
    )
    assert any(found.startswith("new-") for found in ids("strong scaling more chips fixed batch"))
    assert len(list(generation(home).glob("knowledge-*.sqlite"))) == 1


def test_a_store_that_cannot_be_written_is_one_sentence(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASAP_HOME", str(tmp_path / "file" / "home"))
    with pytest.warns(StoreWarning, match="cannot be written"):
        assert ids()


def test_nothing_is_fetched_from_anywhere(home, monkeypatch):
    import socket

    def refuse(*_):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert ids()


WRITER = kept(__file__)["WRITER"]


@pytest.mark.process
def test_several_processes_write_and_read_without_loss(few_notes, tmp_path, home):
    search_knowledge("FSDP")
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(few_notes), str(number), str(tmp_path)])
        for number in range(3)
    ]
    while any(writer.poll() is None for writer in writers):
        search_knowledge("FSDP")
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    for number in range(3):
        hit = search_knowledge(f"writer{number}word", 1)[0]
        assert "turn2turn" in hit.note.body


@pytest.mark.process
def test_an_open_reader_sees_what_another_process_ingested(few_notes, tmp_path, home):
    assert not search_knowledge("writer7word", origin="ingested")
    subprocess.run([sys.executable, "-c", WRITER, str(few_notes), "7", str(tmp_path)], check=True)
    assert search_knowledge("writer7word", 1)[0].note.citation.work == "doc7"


def test_the_collection_names_its_space(home, expected):
    stamps = json.loads((generation(home) / "manifest.json").read_text())["collections"]
    (name,) = stamps
    assert name.startswith("knowledge-lsa1-192-")
