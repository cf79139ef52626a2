"""Gemini embeddings, opt-in with a key; stored in a collection of their own."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from asap.core.errors import ServiceError, UsageError
from asap.core.secrets import redacted
from asap.core.text import plain
from asap.knowledge.document import IndexedDocument

if TYPE_CHECKING:
    from asap.knowledge.index.embedding import Vectors

DIMENSION = 768
_BATCH = 100
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
        self.name = f"{model}-{DIMENSION}"

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
        configuration = types.EmbedContentConfig(task_type=task, output_dimensionality=DIMENSION)
        try:
            client = genai.Client()
            answer = client.models.embed_content(model=self._model, contents=contents, config=configuration)
            vectors = np.array([embedding.values for embedding in answer.embeddings or ()], dtype=np.float32)
        except Exception as error:
            reason = plain(redacted(str(error)), 200)
            raise ServiceError(f"no embedding: {reason}", where=self._model, hint="unset ASAP_EMBEDDER") from error
        if vectors.shape != (len(texts), DIMENSION):
            raise ServiceError("answered with vectors of another shape", where=self._model)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
