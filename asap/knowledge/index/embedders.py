"""Which embedder is in use: our own, or with ``ASAP_EMBEDDER`` Gemini's, stored in a collection of their own."""

import os
import threading
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from asap.core.errors import ServiceError, UsageError
from asap.core.secrets import redacted
from asap.core.text import plain
from asap.knowledge.document import IndexedDocument, files_digest
from asap.knowledge.index.embedding import DIMENSION, VERSION, Embedder, LatentSemanticEmbedder
from asap.knowledge.index.terms import SYNONYMS
from asap.knowledge.notes.corpus import bundled_notes, document_of, note_files
from asap.knowledge.paths import store_folder

if TYPE_CHECKING:
    from asap.knowledge.index.embedding import Vectors


GEMINI_DIMENSION = 768  # of the three that Google recommends for gemini-embedding-001 the least
_BATCH = 100  # texts of one request that the Gemini API takes at most
_KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")


class GeminiEmbedder:
    """An embedding model behind the Gemini API.

    Raises:
        UsageError: there is no key.
    """

    def __init__(self, model: str) -> None:
        if not any(os.environ.get(key) for key in _KEYS):
            hint = f"set {_KEYS[0]}, or unset ASAP_EMBEDDER"
            raise UsageError("Gemini embeddings need a key", where=f"ASAP_EMBEDDER={model}", hint=hint)
        self._model = model
        self.name = f"{model}-{GEMINI_DIMENSION}"

    def embed_documents(self, documents: Sequence[IndexedDocument]) -> "Vectors":
        """Unit vectors, (documents, dimension)."""
        texts = [document.text for document in documents]
        batches = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
        return np.concatenate([self._embed(batch, "RETRIEVAL_DOCUMENT") for batch in batches])

    def embed_query(self, query: str) -> "Vectors":
        """A unit vector."""
        return self._embed([query], "RETRIEVAL_QUERY")[0]

    def _embed(self, texts: list[str], task: str) -> "Vectors":
        from google import genai
        from google.genai import types

        contents: list[types.ContentUnion] = [*texts]
        configuration = types.EmbedContentConfig(task_type=task, output_dimensionality=GEMINI_DIMENSION)
        try:
            client = genai.Client()
            answer = client.models.embed_content(model=self._model, contents=contents, config=configuration)
            vectors = np.array([embedding.values for embedding in answer.embeddings or ()], dtype=np.float32)
        except Exception as error:
            reason = plain(redacted(str(error)), 200)
            raise ServiceError(f"no embedding: {reason}", where=self._model, hint="unset ASAP_EMBEDDER") from error
        if vectors.shape != (len(texts), GEMINI_DIMENSION):
            raise ServiceError("answered with vectors of another shape", where=self._model)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


VARIABLE = "ASAP_EMBEDDER"

_lock = threading.Lock()
_made: dict[str, Embedder] = {}


def configured_embedder() -> Embedder:
    """The embedder that the environment asks for.

    Raises:
        UsageError: ``ASAP_EMBEDDER`` names none that there is, or its key is missing.
    """
    model = os.environ.get(VARIABLE, "")
    if model and not model.startswith("gemini-"):
        raise UsageError("is not an embedder", where=f"{VARIABLE}={model}", hint="unset it, or name a Gemini model")
    if model:
        return GeminiEmbedder(model)
    return bundled_embedder()


def bundled_embedder() -> Embedder:
    """Our own embedder, whatever the environment asks for."""
    with _lock:
        return _latent_semantic()


def _latent_semantic() -> Embedder:
    name = f"{VERSION}-{DIMENSION}-{files_digest([*note_files(), SYNONYMS])}"
    if name not in _made:
        path = store_folder() / f"{name}.npz"
        try:
            _made[name] = LatentSemanticEmbedder.load(name, path)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            fitted = LatentSemanticEmbedder.fit(name, [document_of(note) for note in bundled_notes()])
            with suppress(OSError):  # then the next process fits it again
                fitted.save(path)
            _made[name] = fitted
    return _made[name]
