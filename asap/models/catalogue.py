"""Known architectures by name: ``catalogue.jsonl``, made from published configurations with their source."""

import json
import re
from functools import cache
from pathlib import Path

from asap.models.architecture import Architecture

_FILE = Path(__file__).parent / "catalogue.jsonl"
_PREFIX = re.compile(r"^(?:meta-|hf[-_])+")
_VARIANT = re.compile(r"[-_ ](hf|instruct|chat|base|it|pt|pretrain|thinking|v0\.\d|\d{4})$")


def find_architecture(name: str) -> Architecture | None:
    """The architecture of that name: ``llama2-70b``, ``meta-llama/Llama-2-70b-hf``, …; ``None`` if it is not known."""
    found = _index().get(_key(name))
    return None if found is None else found.model_copy(update={"name": name})


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
