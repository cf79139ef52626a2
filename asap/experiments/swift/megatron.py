"""ms-swift: arguments of ``megatron sft`` (table ``megatron-swift``), and scripts and files of either kind."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import digits
from asap.experiments.accelerate.arguments import with_file
from asap.experiments.experiment import Experiment
from asap.experiments.processes import gpus_of_a_process, processes_of, with_devices
from asap.experiments.shell import Command, Start, options
from asap.experiments.swift.trainer import check_trains_decoder, read_trainer
from asap.experiments.swift.trainer import is_setting as is_trainer_setting
from asap.experiments.tables.reader import read_table
from asap.stacks.megatron.degrees import TENSOR
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings, overriding

_COMMAND = re.compile(r"(?:^|[\s/])(?P<tool>swift|megatron)\s+(?P<task>sft|pt|rlhf)\s(?P<said>.*)", re.DOTALL)
_PROGRAM = re.compile(
    r"\bswift[/.]cli[/.](?P<tool>_megatron[/.])?(?P<task>sft|pt|rlhf)(?:\.py)?\s(?P<said>.*)", re.DOTALL
)
_MEGATRON = ("megatron", "_megatron")
_MANY = ("recompute_modules", "freeze_parameters")


def is_setting(key: str) -> bool:
    """Whether an override is one of the arguments."""
    return is_trainer_setting(key) or key.startswith("--") or key in spec("megatron-swift").words()


def starts(command: Command) -> bool:
    """Whether a command starts ms-swift."""
    return _start(command) is not None


def read_swift_script(start: Start, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what a script starts.

    Raises:
        ConfigError: it trains by another method than the prediction of tokens, or like
            :func:`asap.experiments.swift.trainer.read_trainer`.
        UsageError: an override is not ``key=value``.
    """
    found, command = _start(start.command), start.command
    assert found is not None
    by_megatron, each = (found["tool"] or "").rstrip("/.") in _MEGATRON, gpus_of_a_process(command)
    if found["task"] == "rlhf":
        raise _on_preferences("starts training on preferences or rewards, which is not modelled", start.where)
    if not by_megatron and (each or 1) > 1:
        reason = f"splits the model layer by layer over {each} GPUs of each process, which is not modelled"
        hint = "add NPROC_PER_NODE=… to the command where each GPU has a process of its own"
        raise ConfigError(reason, where=start.where, hint=hint)
    said = with_file(_arguments(found["said"]) | start.undecided, start.path, start.files)
    experiment = with_devices(processes_of(command), experiment)
    if by_megatron:
        return _read_megatron(said, start.path, overrides, experiment)
    return read_trainer(said, start.path, overrides, experiment, start.files)


def _read_megatron(said: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    check_trains_decoder(StackSettings({**said, **overriding(overrides)}, str(path)), "full")
    return read_table(spec("megatron-swift"), said, path, overrides, experiment)


def _on_preferences(reason: str, where: str) -> ConfigError:
    return ConfigError(reason, where=where, hint="give a run that trains on tokens")


def _start(command: Command) -> re.Match[str] | None:
    found = _COMMAND.search(command.text) or _PROGRAM.search(command.text)
    return found if found is not None and "--" in found["said"] else None


def _arguments(text: str) -> dict[str, Any]:
    """Arguments by name: a word, several words of those that take several, or true of a switch."""
    return {
        option.name: list(option.words) if option.name in _MANY else option.words[0] if option.words else True
        for option in options(text)
    }


_VERSION, _PROCESSES = "swift_version", "global_world_size"
_OF_PREFERENCES = "rlhf_type"


def is_arguments_file(values: Mapping[str, Any]) -> bool:
    """Whether a mapping holds the arguments of a run."""
    return _VERSION in values and ("model" in values or "model_type" in values)


def read_arguments_file(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what the arguments say; raises like :func:`asap.experiments.swift.trainer.read_trainer`."""
    if values.get(_OF_PREFERENCES):
        raise _on_preferences(f"{_OF_PREFERENCES}: training on preferences or rewards is not modelled", str(path))
    experiment = with_devices(digits(str(values.get(_PROCESSES, ""))), experiment)
    if TENSOR in values:
        return _read_megatron(values, path, overrides, experiment)
    return read_trainer(values, path, overrides, experiment)
