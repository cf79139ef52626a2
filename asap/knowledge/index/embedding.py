"""Embeddings by latent semantic analysis of the bundled notes, and the protocol of any other embedder.

The space is spanned by the bundled notes alone and everything else is folded into it, so that a vector depends on
nothing but the text and the release: every process and every client of a shared store computes the same. Words that
no note has, such as a team's own names, are hashed into dimensions of their own, so that they still meet.
Deerwester et al., *Indexing by latent semantic analysis*, JASIS 1990; Weinberger et al., *Feature hashing*, ICML 2009.
"""

import os
import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from asap.core.files import private_file, private_folder
from asap.knowledge.document import FIELD_WEIGHTS, IndexedDocument
from asap.knowledge.index.terms import terms

Vectors = NDArray[np.float32]
LATENT = 128  # dimensions of latent semantics; judgement: the order of what is found
HASHED = 64  # dimensions of hashed words; judgement: the order of what is found
DIMENSION = LATENT + HASHED
VERSION = "lsa1"
_SMALLEST = 1e-9  # share of the largest singular value that is zero but for rounding


class Embedder(Protocol):
    """Turns text into unit vectors. The name tells version and dimension: no two spaces share one."""

    @property
    def name(self) -> str:
        """Letters, digits, dots and hyphens."""
        ...

    def embed_documents(self, documents: Sequence[IndexedDocument]) -> Vectors:
        """Unit vectors, (documents, dimension)."""
        ...

    def embed_query(self, query: str) -> Vectors:
        """A unit vector, or zeros if the query says nothing."""
        ...


class LatentSemanticEmbedder:
    """TF-IDF projected on the leading singular directions of a set of documents."""

    def __init__(self, name: str, vocabulary: Sequence[str], projection: Vectors, rarest: float) -> None:
        self.name = name
        self._rows = {term: row for row, term in enumerate(vocabulary)}
        self._projection = projection
        self._rarest = rarest

    @classmethod
    def fit(cls, name: str, documents: Sequence[IndexedDocument]) -> "LatentSemanticEmbedder":
        """Span the space of some documents; fewer of them than dimensions leave the last dimensions zero."""
        weights = [_weights(document) for document in documents]
        frequency = Counter(term for counted in weights for term in counted)
        vocabulary = sorted(frequency)
        idf = np.array([np.log((1 + len(documents)) / (1 + frequency[term])) + 1 for term in vocabulary])
        rows = {term: row for row, term in enumerate(vocabulary)}
        matrix = np.zeros((len(documents), len(vocabulary)))
        for position, counted in enumerate(weights):
            for term, weight in counted.items():
                matrix[position, rows[term]] = np.log1p(weight) * idf[rows[term]]
        directions = _leading_directions(_unit(matrix))
        projection = np.zeros((len(vocabulary), LATENT))
        projection[:, : directions.shape[1]] = directions
        return cls(name, vocabulary, (projection * idf[:, None]).astype(np.float32), np.log(1 + len(documents)) + 1)

    def embed_documents(self, documents: Sequence[IndexedDocument]) -> Vectors:
        """Unit vectors, (documents, dimension)."""
        return np.array([self._vector(_weights(document)) for document in documents], dtype=np.float32)

    def embed_query(self, query: str) -> Vectors:
        """A unit vector, or zeros if the query says nothing."""
        return self._vector(Counter(terms(query)))

    def _vector(self, weights: Mapping[str, float]) -> Vectors:
        vector = np.zeros(DIMENSION, dtype=np.float32)
        known = [(self._rows[term], weight) for term, weight in weights.items() if term in self._rows]
        if known:
            rows, counted = zip(*known, strict=True)
            vector[:LATENT] = np.log1p(np.array(counted, dtype=np.float32)) @ self._projection[list(rows)]
        for term in (term for term in weights if term not in self._rows):
            side, place = divmod(zlib.crc32(term.encode()), HASHED)
            vector[LATENT + place] += np.log1p(weights[term]) * self._rarest * (1 if side % 2 else -1)
        return _unit(vector)

    def save(self, path: Path) -> None:
        """Write the space as an ``.npz`` file, whole or not at all."""
        private_folder(path.parent)
        temporary = private_file(path.with_name(f".{path.stem}.{os.getpid()}.npz"))
        vocabulary = np.array(list(self._rows))
        np.savez(temporary, vocabulary=vocabulary, projection=self._projection, rarest=np.array(self._rarest))
        temporary.replace(path)

    @classmethod
    def load(cls, name: str, path: Path) -> "LatentSemanticEmbedder":
        """Read what :meth:`save` wrote.

        Raises:
            OSError, ValueError, KeyError, zipfile.BadZipFile: the file is missing or damaged.
        """
        with np.load(path, allow_pickle=False) as archive:
            vocabulary, projection = archive["vocabulary"].tolist(), archive["projection"]
            rarest = float(archive["rarest"])
        if projection.shape != (len(vocabulary), LATENT):
            raise ValueError("the shape is wrong")
        return cls(name, vocabulary, projection, rarest)


def _leading_directions(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Right singular vectors of the largest singular values, (terms, at most :data:`LATENT`); the sign is fixed."""
    values, vectors = np.linalg.eigh(matrix @ matrix.T)
    kept = [column for column in np.argsort(-values)[:LATENT] if values[column] > _SMALLEST * values.max()]
    directions = matrix.T @ vectors[:, kept] / np.sqrt(values[kept])
    return directions * np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(len(kept))])


def _weights(document: IndexedDocument) -> Mapping[str, float]:
    weights: defaultdict[str, float] = defaultdict(float)
    for field, text in document.fields.items():
        for term in terms(text):
            weights[term] += FIELD_WEIGHTS[field]
    return weights


def _unit(vectors: NDArray) -> NDArray:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(length > 0, length, 1)
