"""The vectors of a small collection as one matrix: searched exactly, and read without importing Chroma.

Importing Chroma takes half a second, longer than everything else that a cold search does. Below :data:`SMALL`
documents an exact scan is also faster than a graph, and finds the same.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from asap.knowledge.index.vectors import Neighbour, vectors_of

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

    from asap.knowledge.index.embedding import Vectors

SMALL = 2000


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
