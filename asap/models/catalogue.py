"""Known architectures by name: ``catalogue.jsonl``, made from published configurations with their source."""

import json
import re
from functools import cache
from pathlib import Path

from asap.models.architecture import Architecture

_FILE = Path(__file__).parent / "catalogue.jsonl"
_PREFIX = re.compile(r"^(?:meta-|hf[-_])+")
_VARIANT = re.compile(r"[-_ ](hf|instruct|chat|base|it|pt|pretrain|thinking|v0\.\d|\d{4})$")

_SIZE = re.compile(r"^(?P<base>.*?(?<![0-9x.])[0-9]+(?:\.[0-9]+)?[bm])(?:[-_ ](?P<rest>.*))?$", re.IGNORECASE)
_OTHER_SHAPE = re.compile(
    r"(?<![a-z0-9])(?:a[0-9.]+b|[0-9]+x[0-9.]+b|moe|vl|vision|audio|omni)(?![a-z0-9])", re.IGNORECASE
)
"""A size of the active parameters, a mixture, and an encoder beside the decoder are other architectures."""


def find_architecture(name: str) -> Architecture | None:
    """The architecture of that name: ``llama2-70b``, ``meta-llama/Llama-2-70b-hf``, …; ``None`` if it is not known."""
    found = _index().get(_key(name))
    return None if found is None else found.model_copy(update={"name": name})


def find_base(name: str) -> Architecture | None:
    """The architecture that the beginning of a checkpoint's name says up to its size, as ``TinyLlama-1.1B`` of
    ``TinyLlama-1.1B-step-50K-105b``; ``None`` where nothing follows the size, or what does says another architecture.
    """
    found = _SIZE.search(name.rpartition("/")[2])
    if found is None or not found["rest"] or _OTHER_SHAPE.search(found["rest"]):
        return None
    return _index().get(_key(found["base"]))


def known_architectures() -> tuple[str, ...]:
    """The name of each architecture, in the order of the file."""
    return tuple(entry["name"] for entry in _entries())


@cache
def _entries() -> list[dict]:
    return [json.loads(line) for line in _FILE.read_text(encoding="utf-8").splitlines()]


@cache
def _index() -> dict[str, Architecture]:
    index: dict[str, Architecture] = {}
    for entry in _entries():
        architecture = Architecture(name=entry["name"], **entry["architecture"])
        for name in (entry["name"], *entry.get("aliases", ())):
            index.setdefault(_key(name), architecture)
    return index


def _key(name: str) -> str:
    bare = _PREFIX.sub("", name.casefold().rstrip("/").rpartition("/")[2])
    while _VARIANT.search(bare):
        bare = _VARIANT.sub("", bare)
    return re.sub(r"[^a-z0-9.=]", "", bare)
