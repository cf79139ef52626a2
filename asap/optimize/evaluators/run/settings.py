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
from asap.stacks.accelerate.stack import OF_PROGRAM
from asap.stacks.deepspeed.stack import PYTHON
from asap.stacks.torchtitan.lines import is_python, plain_values, read_lines

_WITHOUT = "# without "


def settings_document(overrides: Overrides) -> dict[str, Any]:
    """The settings as a configuration file of the stack nests them.

    Raises:
        PlanError: they belong into two files, or are Python.
    """
    match overrides.stack:
        case "torchtitan":
            return _nested(plain_values(overrides.text)) if is_python(overrides.text) else tomllib.loads(overrides.text)
        case "deepspeed":
            of_yaml, of_json = _of_deepspeed(overrides.text)
            if of_yaml and of_json:
                reason = "changes arguments and the DeepSpeed configuration that they name, and a try changes one file"
                raise PlanError(reason, where=", ".join((*of_yaml, *of_json)))
            return of_yaml or of_json
        case "accelerate":
            of_configuration, of_program = _of_accelerate(overrides.text)
            if of_configuration and of_program:
                reason = "changes Accelerate's configuration and the program's arguments, and a try changes one file"
                raise PlanError(reason, where=", ".join((*of_configuration, *of_program)))
            return of_configuration or of_program
        case "nanotron" | "axolotl" | "primus":
            return yaml.safe_load(overrides.text) or {}
        case "megatron" | "settings" if is_yaml(overrides.text):
            return yaml.safe_load(overrides.text) or {}
        case "maxtext" | "megatron" | "nemo" | "bridge" | "fsdp" | "settings":
            return _nested(asked_settings(overrides))


def asked_settings(overrides: Overrides) -> dict[str, str]:
    """Names and values that a log may show: of ``key=value``, ``--key value``, or a document."""
    if overrides.stack == "torchtitan" and is_python(overrides.text):
        return read_lines(overrides.text)
    if overrides.stack == "deepspeed":
        return {key: _written(value) for part in _of_deepspeed(overrides.text) for key, value in _flat(part)}
    if overrides.stack == "accelerate":
        parts = _of_accelerate(overrides.text)
        return {key: _written(value) for part in parts for key, value in _flat(part)}
    if overrides.stack in ("torchtitan", "nanotron", "axolotl", "primus"):
        return {key: _written(value) for key, value in _flat(settings_document(overrides))}
    if overrides.stack in ("megatron", "settings") and is_yaml(overrides.text):
        return {key: _written(value) for key, value in _flat(settings_document(overrides))}
    return _options(overrides.text)


def left_out(overrides: Overrides) -> tuple[str, ...]:
    """Options that the launcher's words take back, which no argument can: ``--swiglu``."""
    if overrides.stack != "megatron":
        return ()
    return tuple(word for word in overrides.text.partition(_WITHOUT)[2].partition("#")[0].split() if word[:2] == "--")


def is_yaml(text: str) -> bool:
    """Whether Megatron-LM's arguments are said by its own YAML."""
    return bool(text) and not text.startswith(("--", "#"))


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


def _of_deepspeed(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments beside DeepSpeed's configuration, in whichever form, and the configuration."""
    lines = text.split("\n")
    configuration = json.loads(lines.pop()) if lines[-1].startswith("{") else {}
    said = "\n".join(line for line in lines if not line.startswith("# "))
    if said.startswith("--"):
        return {key: yaml.safe_load(value) for key, value in _options(said.partition("# ")[0]).items()}, configuration
    if said.startswith(PYTHON):
        call = ast.parse(said, mode="eval").body
        assert isinstance(call, ast.Call)
        return {word.arg or "": ast.literal_eval(word.value) for word in call.keywords}, configuration
    return yaml.safe_load(said) or {}, configuration


def _of_accelerate(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What belongs into Accelerate's configuration, and into the command of the program."""
    of_configuration, _, of_program = text.partition(OF_PROGRAM)
    options = {key: yaml.safe_load(value) for key, value in _options(of_program).items()}
    return yaml.safe_load(of_configuration) or {}, options


def _nested(settings: Mapping[str, str]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for name, value in settings.items():
        *sections, key = name.lstrip("+").split(".")
        inner = document
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[key] = yaml.safe_load(value)
    return document


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
