"""Megatron-LM's own YAML, which ``--yaml-cfg`` names and beside which no argument counts
(``megatron/training/yaml_arguments.py``)."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document
from asap.experiments.files.named_file import Brought, below_variable, find_named, missing
from asap.experiments.megatron.names import CORE
from asap.experiments.megatron.reader import read_megatron
from asap.experiments.processes import with_processes
from asap.experiments.settings.stack_settings import StackSettings
from asap.experiments.shell import Command, has_substitution, options, read_commands, with_sources
from asap.stacks.megatron.versions import YAML_FILE

_MODEL, _PARALLEL = "language_model", "model_parallel"
_RENAMED = {"num_moe_experts": "num_experts", "fp8": "fp8_format"}
_DERIVED = "virtual_pipeline_model_parallel_size"
"""Megatron-LM works it out of the layers of a virtual stage, whatever the file says."""
_OPTION = re.compile(rf"--{YAML_FILE.replace('_', '[-_]')}\b")


def is_megatron_yaml(values: Mapping[str, Any]) -> bool:
    """Whether a mapping has the two sections of such a file."""
    return isinstance(values.get(_MODEL), dict) and isinstance(values.get(_PARALLEL), dict)


def read_megatron_yaml(document: Document, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what the file says; raises like :func:`read_megatron`."""
    model, parallel = document.values[_MODEL], document.values[_PARALLEL]
    said: dict[str, Any] = {str(key): value for key, value in document.values.items() if not isinstance(value, dict)}
    said |= {_RENAMED.get(key, str(key)): value for key, value in {**model, **parallel}.items()}
    said |= {
        "swiglu": model.get("activation_func") == "swiglu" or model.get("gated_linear_unit") is True,
        "group_query_attention": model.get("num_query_groups") is not None,
        _DERIVED: None,
        YAML_FILE: document.path.name,
    }
    return read_megatron(StackSettings(said, str(document.path), document.lines), overrides, experiment, CORE)


def is_yaml_script(text: str) -> bool:
    """Whether a script starts Megatron-LM with such a file."""
    return _OPTION.search(text) is not None and any(map(_names_file, read_commands(text)))


def read_yaml_script(
    text: str, path: Path, overrides: Iterable[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with the file that a script names.

    Raises:
        ConfigError: the file is not there, or is none of Megatron-LM's.
        UsageError: an override is not ``key=value``.
    """
    commands = read_commands(with_sources(text, path.parent, brought))
    start = next((command for command in commands if _names_file(command)), None)
    named = _named_by(start) if start else None
    if start is None or named is None:
        raise ConfigError("starts nothing that is read", where=str(path))
    found = None if has_substitution(named) else find_named(named, path, brought)
    if found is None:
        raise missing("starts Megatron-LM with", named, path, "lay it beside the script, or give it as --config")
    document = found.document()
    if not is_megatron_yaml(document.values):
        raise ConfigError(f"has no {_MODEL} and {_PARALLEL}, as Megatron-LM's YAML has", where=str(found.path))
    return read_megatron_yaml(document, overrides, with_processes(start, experiment))


def _names_file(command: Command) -> bool:
    return not command.assigns and command.certain and _named_by(command) is not None


def _named_by(command: Command) -> str | None:
    said = next((option.words[:1] for option in options(command.text) if option.name == YAML_FILE), ())
    return below_variable(said[0]) if said else None
