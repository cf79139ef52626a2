"""Vectors in Chroma: storage and nearest-neighbour search. Embeddings are always computed by us."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from asap.knowledge.document import Corpus, IndexedDocument

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

    from asap.knowledge.index.embedding import Embedder, Vectors

Neighbour = tuple[str, float]
BATCH = 1000  # documents written at once; judgement: only the time
# Recall of the 100 nearest of 5,000 random vectors: 0.78 with Chroma's defaults, 0.99 with these.
_HNSW = {"space": "cosine", "ef_construction": 200, "ef_search": 300, "max_neighbors": 32}
# Everything is on disk when a writer closes, so that readers do not finish its work.
_FLUSHED = {"sync_threshold": 1, "batch_size": 1}


def folder_client(folder: Path) -> "Client":
    """A client of the embedded store in a folder."""
    import chromadb
    from chromadb.config import Settings

    return cast("Client", chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False)))


def server_client(host: str, port: int, ssl: bool) -> "Client":
    """A client of a ``chroma run`` server."""
    import chromadb
    from chromadb.config import Settings

    settings = Settings(anonymized_telemetry=False)
    return cast("Client", chromadb.HttpClient(host=host, port=port, ssl=ssl, settings=settings))


def collection_name(corpus: Corpus, embedder: "Embedder") -> str:
    """One collection for each corpus in each space of vectors."""
    return f"{corpus.name}-{embedder.name}"


def collection_of(client: "Client", name: str, *, flushed: bool) -> "Collection":
    """The collection of that name, made if it is not there; its vectors come from us alone."""
    configuration: Any = {"hnsw": {**_HNSW, **(_FLUSHED if flushed else {})}}
    return client.get_or_create_collection(name, embedding_function=None, configuration=configuration)


def upsert(
    collection: "Collection", documents: Sequence[IndexedDocument], embedder: "Embedder", *, payloads: bool
) -> None:
    """Add documents with their vectors; what is there already stays as it is.

    Payloads are for who has nothing but the collection: Chroma indexes their text too, which takes the longest.
    """
    for batch in _batches(documents):
        collection.upsert(
            ids=[document.key for document in batch],
            embeddings=embedder.embed_documents(batch),
            documents=[document.payload for document in batch] if payloads else None,
            metadatas=[{"source": document.source} for document in batch],
        )


def delete(collection: "Collection", keys: Sequence[str]) -> None:
    """Remove documents."""
    for batch in _batches(keys):
        collection.delete(ids=list(batch))


def keys_of(collection: "Collection", source: str | None = None) -> set[str]:
    """Keys of all documents, or of those of one source."""
    where: Any = None if source is None else {"source": source}
    return set(collection.get(where=where, include=[])["ids"])


def vectors_of(collection: "Collection") -> tuple[list[str], "Vectors"]:
    """Keys and vectors of all documents, in the order of the keys."""
    import numpy as np

    stored = collection.get(include=["embeddings"])
    rows = sorted(range(len(stored["ids"])), key=stored["ids"].__getitem__)
    vectors = np.asarray(stored["embeddings"], dtype=np.float32)
    return [stored["ids"][row] for row in rows], vectors[rows] if rows else vectors.reshape(0, 0)


def nearest(collection: "Collection", vector: "Vectors", limit: int) -> list[Neighbour]:
    """Keys and cosine similarities of the nearest documents, nearest first."""
    if not vector.any():
        return []
    found = collection.query(query_embeddings=vector[None, :], n_results=limit, include=["distances"])
    distances = found["distances"] or [[]]
    return [(key, 1 - distance) for key, distance in zip(found["ids"][0], distances[0], strict=True)]


def _batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
