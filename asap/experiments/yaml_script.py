"""Scripts that start a stack with its YAML: ``axolotl train run.yml --micro-batch-size 4``,
``llamafactory-cli train run.yaml per_device_train_batch_size=4``."""

import re
from pathlib import Path
from typing import Any

from asap.experiments.documents import Document
from asap.experiments.named_file import Brought, find_named
from asap.experiments.shell import has_substitution, options, read_commands, with_sources, words
from asap.experiments.yaml_text import parse_yaml

_START = re.compile(r"\b(?:llamafactory-cli\s+train|axolotl\s+train|axolotl\.cli\.train)\s+(.*)", re.DOTALL)
_YAML = (".yaml", ".yml")
_ASSIGNED = re.compile(r"(\w+)=(.*)", re.ASCII | re.DOTALL)
_FOR_LAUNCHER = " -- "


def started_document(text: str, path: Path, brought: Brought | None = None) -> Document | None:
    """The YAML that a script starts, with the settings of its command on top; ``None`` where it is not there.

    Raises:
        ConfigError: it is malformed.
    """
    commands = read_commands(with_sources(text, path.parent, brought))
    starts = (_START.search(command.text) for command in commands if command.certain and not command.assigns)
    for start in starts:
        said = start[1].partition(_FOR_LAUNCHER)[0] if start else ""
        named = next((word for word in words(said) if word.endswith(_YAML) and not has_substitution(word)), None)
        found = None if named is None else find_named(named, path, brought)
        if found is not None:
            document = found.document()
            return Document(document.path, {**document.values, **_settings(said)}, document.lines)
    return None


def _settings(said: str) -> dict[str, Any]:
    """Settings of a command as the YAML has them; one that only a run can tell is none."""
    pairs = {option.name: " ".join(option.words) if option.words else "true" for option in options(said)}
    pairs |= {found[1]: found[2] for word in words(said) if (found := _ASSIGNED.fullmatch(word))}
    return {key: None if has_substitution(value) else parse_yaml(value, f"--{key}")[0] for key, value in pairs.items()}
