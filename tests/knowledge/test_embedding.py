import numpy as np
import pytest

from asap.core.errors import UsageError
from asap.knowledge.document import IndexedDocument
from asap.knowledge.index.embedders import configured_embedder
from asap.knowledge.index.embedding import DIMENSION, LatentSemanticEmbedder
from asap.knowledge.notes.corpus import bundled_notes, document_of


def a_document(text):
    return IndexedDocument(id="x", title=text, keywords="", body=text, detail="", payload=text)


def test_vectors_are_unit_and_related_texts_lie_close():
    embedder = configured_embedder()
    vectors = embedder.embed_documents([document_of(note) for note in bundled_notes()[:20]])
    assert vectors.shape == (20, DIMENSION)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    related = embedder.embed_query("ZeRO-3 weight gathers") @ embedder.embed_query("FSDP all-gather of parameters")
    unrelated = embedder.embed_query("ZeRO-3 weight gathers") @ embedder.embed_query("systolic array tile padding")
    assert related > 0.5 > unrelated


def test_a_query_that_says_nothing_has_no_direction():
    assert not configured_embedder().embed_query("what is the").any()


def test_words_that_no_note_has_still_meet():
    embedder = configured_embedder()
    (there,) = embedder.embed_documents([a_document("zyxwv quuxly")])
    assert embedder.embed_query("quuxly zyxwv") @ there > 0.9


def test_the_space_is_the_same_for_everyone(tmp_path):
    documents = [document_of(note) for note in bundled_notes()[:40]]
    first, second = (LatentSemanticEmbedder.fit("n", documents) for _ in range(2))
    first.save(tmp_path / "n.npz")
    loaded = LatentSemanticEmbedder.load("n", tmp_path / "n.npz")
    for embedder in (second, loaded):
        assert np.array_equal(first.embed_documents(documents), embedder.embed_documents(documents))


def test_a_damaged_space_is_made_again(home):
    name = configured_embedder().name
    before = configured_embedder().embed_query("FSDP")
    (home / "chroma").mkdir(parents=True, exist_ok=True)
    (home / "chroma" / f"{name}.npz").write_bytes(b"PK broken")
    from asap.knowledge.index import embedders

    embedders._made.clear()
    assert np.array_equal(configured_embedder().embed_query("FSDP"), before)


def test_few_documents_leave_dimensions_empty():
    embedder = LatentSemanticEmbedder.fit("n", [a_document("mesh axis"), a_document("pipeline bubble")])
    assert embedder.embed_query("mesh").shape == (DIMENSION,)


def test_an_unknown_embedder_is_refused(monkeypatch):
    monkeypatch.setenv("ASAP_EMBEDDER", "word2vec")
    with pytest.raises(UsageError, match="ASAP_EMBEDDER=word2vec"):
        configured_embedder()
