"""ms-swift: arguments of ``megatron sft`` (table ``megatron-swift``), and scripts and files of either kind."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import digits
from asap.experiments.accelerate.program import with_file
from asap.experiments.experiment import Experiment
from asap.experiments.megatron.script import is_argument
from asap.experiments.processes import gpus_of_a_process, processes_of, with_devices
from asap.experiments.shell import Command, Start, options
from asap.experiments.swift import trainer
from asap.experiments.swift.trainer import check_trains_decoder, read_trainer
from asap.experiments.swift.trainer import is_setting as is_trainer_setting
from asap.experiments.tables.reader import read_table
from asap.stacks.megatron.degrees import TENSOR
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings, overriding


def is_megatron_setting(key: str) -> bool:
    """Whether an override is one of the arguments."""
    return key in spec("megatron-swift").names["lengths"] or is_argument(key)


def read_megatron_swift(
    said: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what the arguments say.

    Args:
        said: by name.
        path: the file that says them.
        overrides: ``key=value`` of the user.
        experiment: what is known besides, with the processes that are started.

    Raises:
        ConfigError: not all parameters are trained on tokens, or a value of the wrong kind.
        UsageError: an override is not ``key=value``.
    """
    check_trains_decoder(StackSettings({**said, **overriding(overrides)}, str(path)), "full")
    return read_table(spec("megatron-swift"), said, path, overrides, experiment)


_COMMAND = re.compile(r"(?:^|[\s/])(?P<tool>swift|megatron)\s+(?P<task>sft|pt|rlhf)\s(?P<said>.*)", re.DOTALL)
_PROGRAM = re.compile(
    r"\bswift[/.]cli[/.](?P<tool>_megatron[/.])?(?P<task>sft|pt|rlhf)(?:\.py)?\s(?P<said>.*)", re.DOTALL
)
_MEGATRON = ("megatron", "_megatron")
_MANY = ("recompute_modules", "freeze_parameters")


def is_setting(key: str) -> bool:
    """Whether an override is one of the arguments."""
    return is_trainer_setting(key) or is_megatron_setting(key)


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
        reason = "starts training on preferences or rewards, which is not modelled"
        raise ConfigError(reason, where=start.where, hint="give a run that trains on tokens")
    if not by_megatron and (each or 1) > 1:
        reason = f"splits the model layer by layer over {each} GPUs of each process, which is not modelled"
        hint = "add NPROC_PER_NODE=… to the command where each GPU has a process of its own"
        raise ConfigError(reason, where=start.where, hint=hint)
    said = with_file(_arguments(found["said"]) | start.undecided, start.path, start.files)
    experiment = with_devices(processes_of(command), experiment)
    if by_megatron:
        return read_megatron_swift(said, start.path, overrides, experiment)
    return read_trainer(said, start.path, overrides, experiment, start.files)


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


def is_setting_of(values: Mapping[str, Any]) -> Callable[[str], bool]:
    """What tells whether an override is one of the arguments."""
    return is_megatron_setting if TENSOR in values else trainer.is_setting


def read_arguments_file(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what the arguments say; raises like :func:`asap.experiments.swift.trainer.read_trainer`."""
    if values.get(_OF_PREFERENCES):
        reason = f"{_OF_PREFERENCES}: training on preferences or rewards is not modelled"
        raise ConfigError(reason, where=str(path), hint="give a run that trains on tokens")
    experiment = with_devices(digits(str(values.get(_PROCESSES, ""))), experiment)
    if TENSOR in values:
        return read_megatron_swift(values, path, overrides, experiment)
    return trainer.read_trainer(values, path, overrides, experiment)
