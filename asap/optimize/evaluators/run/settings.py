"""What the launcher's words set: as a document, and as names with values."""

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from asap.core.errors import PlanError
from asap.proposals.proposal import Overrides
from asap.stacks.stack_settings import nested
from asap.stacks.statements import flags, is_python, plain_values, read_lines

_WITHOUT = "# without "
_HEADING = re.compile(r"^# [^\n]*:\n", re.MULTILINE)
"""Between what goes into one place and what goes into another."""
_WORDS = re.compile(r"--|#|\+*[\w.]+=(?!=)")
_CALL = re.compile(r"\w+\(")


def settings_document(overrides: Overrides) -> dict[str, Any]:
    """The settings as a configuration file of the stack nests them.

    Raises:
        PlanError: they belong into two files, or are Python.
    """
    parts = [document for text in _parts(overrides.text) if (document := _document(text))]
    if len(parts) > 1:
        reason = "changes a configuration and arguments beside it, and a try changes one file"
        raise PlanError(reason, where=", ".join(key for part in parts for key in part))
    return parts[0] if parts else {}


def asked_settings(overrides: Overrides) -> dict[str, str]:
    """Names and values that a log may show: of ``key=value``, ``--key value``, or a document."""
    found: dict[str, str] = {}
    for text in _parts(overrides.text):
        if is_python(text):
            found |= read_lines(text)
        elif _WORDS.match(text):
            found |= _options(text)
        else:
            found |= {key: _written(value) for key, value in _flat(_document(text))}
    return found


def words(overrides: Overrides) -> str:
    """The launcher's words as arguments of a shell command: flags where they are TOML, JSON or YAML in one word."""
    parts = _parts(overrides.text)
    if len(parts) != 1:
        return shlex.quote(overrides.text) if parts else ""
    if is_python(parts[0]) or parts[0].startswith("["):
        return shlex.join(flags(plain_values(parts[0]) if is_python(parts[0]) else asked_settings(overrides)))
    if _WORDS.match(parts[0]):
        return " ".join(parts[0].partition("# ")[0].split("\n")).strip()
    return shlex.quote(overrides.text)


def left_out(overrides: Overrides) -> tuple[str, ...]:
    """Options that the launcher's words take back, which no argument can: ``--swiglu``."""
    return tuple(word for word in overrides.text.partition(_WITHOUT)[2].partition("#")[0].split() if word[:2] == "--")


def _parts(text: str) -> list[str]:
    return [part.strip("\n") for part in _HEADING.split(text) if part.strip()]


def _document(text: str) -> dict[str, Any]:
    """One part of what is pasted, by its form."""
    if is_python(text):
        return _nested(plain_values(text))
    if _WORDS.match(text):
        return _nested(_options(text))
    if _CALL.match(text):
        call = ast.parse(text, mode="eval").body
        return {word.arg or "": ast.literal_eval(word.value) for word in getattr(call, "keywords", ())}
    read = tomllib.loads if text.startswith("[") else json.loads if text.startswith("{") else yaml.safe_load
    return read(text) or {}


def _options(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    pending = None
    for word in shlex.split(text, comments=True):
        if word.startswith("--"):
            pending = word[2:].replace("-", "_")
            found[pending] = "true"
        elif pending is not None:
            found[pending], pending = word, None
        elif "=" in word:
            key, _, value = word.partition("=")
            found[key] = value
    return found


def _nested(settings: Mapping[str, str]) -> dict[str, Any]:
    return nested({name.lstrip("+"): yaml.safe_load(value) for name, value in settings.items()})


def _flat(document: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    for key, value in document.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        else:
            yield name, value


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


_DECISIVE = re.compile(
    r"(?:^|[._])(?:(?:global|micro|local|per_device|per_device_train)_batch_size|max_target_length|seq_length|seq_len|"
    r"(?:\w+_)?parallel(?:ism|_size|_degree))$"
)
_COUNT = re.compile(r"[1-9]\d{0,11}(?:\.\d{1,6})?", re.ASCII)


def decisive(settings: Mapping[str, object]) -> dict[str, str]:
    """Of the settings on record those that make it another run if they differ; no automatic ones such as -1."""
    found = {key: str(value) for key, value in settings.items() if _DECISIVE.search(key)}
    return {key: value for key, value in found.items() if _COUNT.fullmatch(value)}
