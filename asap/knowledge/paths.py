"""The folder of the store."""

from pathlib import Path

from asap.core.files import home

SERVER = "ASAP_CHROMA_URL"
"""Variable with the URL of a shared Chroma server."""
LOCK_TIMEOUT_S = 60.0
"""A whole index is written under the lock. Judgement: when waiting ends."""


def store_folder() -> Path:
    """The folder of the store."""
    return home() / "chroma"
