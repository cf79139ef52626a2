"""Which embedder is in use: our own, or a Gemini model if the user asks for one with ``ASAP_EMBEDDER``."""

import os
import threading
import zipfile
from contextlib import suppress

from asap.core.errors import UsageError
from asap.knowledge.document import files_digest
from asap.knowledge.index.embedding import DIMENSION, VERSION, Embedder, LatentSemanticEmbedder
from asap.knowledge.index.terms import SYNONYMS
from asap.knowledge.notes.corpus import bundled_notes, document_of, note_files
from asap.knowledge.paths import store_folder

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
        from asap.knowledge.index.gemini import GeminiEmbedder

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
