"""Hybrid search over one corpus: a lexical and a vector ranking, fused by reciprocal rank.

Cormack, Clarke and Büttcher, *Reciprocal rank fusion outperforms Condorcet and individual rank learning methods*,
SIGIR 2009.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from asap.knowledge.document import Corpus
from asap.knowledge.index.lexical import LexicalIndex, StoredDocument
from asap.knowledge.index.terms import readable, terms
from asap.knowledge.index.vectors import Neighbour, vectors_of

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

    from asap.knowledge.index.embedding import Embedder, Vectors


Nearest = Callable[["Vectors", int], list[Neighbour]]
"""Keys and cosine similarities of the documents nearest to a vector."""
POOL = 50  # hits of each way to search that are ranked together; judgement: what is found far down
_RANK_CONSTANT = 60  # of reciprocal rank fusion (Cormack, Clarke & Büttcher 2009)
_FAINT = 0.2
"""Cosine below which vectors have nothing to do with each other; a floor of 0.3 changes no score of 89 questions."""


@dataclass(frozen=True)
class ScoredDocument:
    """A document that a query found, and by what."""

    document: StoredDocument
    score: float
    """1 if both rankings put it first; falls with either rank."""
    similarity: float
    """Cosine of the vectors; 0 where the vector ranking did not reach it."""
    words: tuple[str, ...]
    """Words and concepts that it shares with the query."""


class Index:
    """An opened corpus. ``stamp`` says which content it stands for, ``is_current`` whether that still holds."""

    def __init__(
        self,
        lexical: LexicalIndex,
        nearest: Nearest,
        embedder: "Embedder",
        stamp: str,
        is_current: Callable[[str], bool],
        release: Callable[[], None],
    ) -> None:
        self.lexical = lexical
        self._nearest = nearest
        self._embedder = embedder
        self.stamp = stamp
        self._is_current = is_current
        self._release = release

    def serves(self, corpus: Corpus) -> bool:
        """Whether what was opened is still what the corpus holds."""
        return self._is_current(corpus.fingerprint())

    def close(self) -> None:
        """Release files and connections."""
        self.lexical.close()
        self._release()

    def search(self, query: str, limit: int) -> list[ScoredDocument]:
        """The best of both rankings, best first; empty if the query says nothing that the index knows."""
        asked = terms(query)
        by_words = self.lexical.ranked(asked, POOL)
        near = self._nearest(self._embedder.embed_query(query), POOL)
        by_vector = [(key, similarity) for key, similarity in near if similarity >= _FAINT]
        similarities = dict(by_vector)
        scores: dict[str, float] = {}
        for ranking in (by_words, by_vector):
            for rank, (key, _) in enumerate(ranking):
                scores[key] = scores.get(key, 0.0) + _RANK_CONSTANT / (_RANK_CONSTANT + rank) / 2
        best = sorted(scores, key=lambda key: (-scores[key], key))[:limit]
        documents = self.lexical.stored(best)
        return [
            ScoredDocument(
                documents[key], scores[key], similarities.get(key, 0.0), _common_terms(asked, documents[key], query)
            )
            for key in best
            if key in documents
        ]


def _common_terms(asked: Sequence[str], document: StoredDocument, query: str) -> tuple[str, ...]:
    common = [term for term in dict.fromkeys(asked) if term in document.terms]
    return tuple(dict.fromkeys(readable(common, query)))


SMALL = 2000  # documents up to which vectors are compared one by one; judgement: only the time


class Matrix:
    """Keys and their unit vectors, one a row."""

    def __init__(self, keys: list[str], vectors: "Vectors") -> None:
        self.keys = keys
        self._vectors = vectors

    @classmethod
    def read(cls, path: Path) -> "Matrix":
        """What :func:`write_matrix` wrote.

        Raises:
            OSError, ValueError, KeyError, zipfile.BadZipFile: the file is missing or damaged.
        """
        with np.load(path, allow_pickle=False) as archive:
            return cls(archive["keys"].tolist(), archive["vectors"])

    def nearest(self, vector: "Vectors", limit: int) -> list[Neighbour]:
        """Keys and cosine similarities of the nearest documents, nearest first."""
        if not self.keys or not vector.any():
            return []
        similarities = self._vectors @ vector
        best = np.argsort(-similarities, kind="stable")[:limit]
        return [(self.keys[row], float(similarities[row])) for row in best]


def write_matrix(path: Path, collection: "Collection") -> None:
    """Write out the vectors of a collection, or remove what was written once it is small no more."""
    if collection.count() > SMALL:
        path.unlink(missing_ok=True)
        return
    keys, vectors = vectors_of(collection)
    np.savez(path, keys=np.array(keys, dtype=np.str_), vectors=vectors)
