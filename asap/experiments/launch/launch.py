"""What a script, a manifest or a definition starts."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from asap.core.errors import AsapError
from asap.core.files import is_file
from asap.core.numbers import digits
from asap.core.text import plain
from asap.experiments.files.documents import read_document
from asap.experiments.processes import processes_of
from asap.experiments.shell import Command, has_substitution, options
from asap.models import find_architecture


@dataclass(frozen=True)
class Launch:
    """One start of MaxText."""

    config: str | None
    overrides: tuple[str, ...]
    line: int
    hardware: str | None = None
    slices: int | None = None
    unknown: tuple[str, ...] = ()
    """Keys whose value is not said."""
    strays: tuple[str, ...] = ()
    """Arguments that are no ``key=value``, which MaxText refuses."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that hold flags of a compiler or runtime, or are one."""
    benchmark: str | None = None
    """Name of the definition that MaxText's benchmark runner is told to run; overrides are then its own."""
    others: int = 0
    """Further starts of MaxText in the same script."""
    cut: str = ""
    """What a comment in the middle of the command keeps from it."""


_MODEL = ("model_name_or_path", "model_name", "model_id", "model", "base_model", "model_path", "pretrained_model")
_BATCH = ("global_batch_size", "total_batch_size", "total_train_batch_size", "effective_batch_size")
_SEQUENCE = (
    "seq_length", "sequence_length", "seq_len", "max_seq_len", "max_seq_length", "block_size", "context_length",
    "max_length", "model_max_length", "cutoff_len",
)  # fmt: skip
_OPEN = "N"
_PART = re.compile(r"(?:^|[^a-z])(?:q?lora|dora|peft|adapters?)(?:[^a-z]|$)", re.IGNORECASE)
_WAYS = re.compile(r"(?:^|_)(?:type|method|mode|tuning)$")
_OFF = ("", "0", "false", "no", "none")


def trained_part(command: Command, program: str) -> str | None:
    """What says that a command trains adapters, an argument or its program's name; ``None`` where nothing does."""
    for option in options(command.text):
        value = option.words[0] if option.words else "true"
        named = _PART.search(option.name) is not None or (_WAYS.search(option.name) and _PART.search(value))
        if named and value.casefold() not in _OFF:
            return f"--{plain(option.name, 40)} {plain(value, 20)}"
    return "adapters, by its name" if _PART.search(program) else None


def suggestion(command: Command, path: Path) -> str | None:
    """``asap analyze …`` for what a command starts, with ``N`` for what is not plain; ``None`` where no model is."""
    said = {option.name: option.words[0] for option in options(command.text) if option.words}
    said = {key: value for key, value in said.items() if not has_substitution(value)}
    model = next(_models(said, path), None)
    if model is None:
        return None
    devices = processes_of(command)
    given = [
        f"--hardware CHIP-{devices or _OPEN}",
        f"--batch {_count(said, _BATCH)}",
        f"--sequence {_count(said, _SEQUENCE)}",
        f"--plan data={devices or _OPEN}",
    ]
    return f"asap analyze {plain(shlex.quote(model), 120)} {' '.join(given)}"


def _models(said: Mapping[str, str], path: Path) -> Iterator[str]:
    """A model's ``config.json`` that an argument names, or a name that the catalogue has."""
    for value in said.values():
        if value.endswith(".json") and not value.startswith("/") and is_file(path.parent / value):
            try:
                values = read_document(path.parent / value).values
            except AsapError:
                continue
            if "model_type" in values and "hidden_size" in values:
                yield value
    for key in _MODEL:
        if key in said and find_architecture(said[key]) is not None:
            yield f"model={said[key]}"


def _count(said: Mapping[str, str], names: tuple[str, ...]) -> str:
    found = next((digits(said[name]) for name in names if name in said), None)
    return str(found or _OPEN)
