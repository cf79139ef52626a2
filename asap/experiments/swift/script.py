"""Scripts that start ms-swift: ``NPROC_PER_NODE=8 swift sft --model … --deepspeed zero3``, ``megatron sft …``."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import digits
from asap.experiments.accelerate.program import with_file
from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought
from asap.experiments.processes import gpus_of_a_process, processes_of, with_devices, with_note_on_others
from asap.experiments.shell import (
    Command,
    commands_within,
    made_files,
    options,
    read_commands,
    undecided_options,
    with_sources,
)
from asap.experiments.swift import megatron, trainer
from asap.experiments.swift.megatron import is_setting as is_megatron_setting
from asap.experiments.swift.megatron import read_megatron_swift
from asap.experiments.swift.trainer import is_setting as is_trainer_setting
from asap.experiments.swift.trainer import read_trainer
from asap.stacks.megatron.degrees import TENSOR

_COMMAND = re.compile(r"(?:^|[\s/])(?P<tool>swift|megatron)\s+(?P<task>sft|pt|rlhf)\s(?P<said>.*)", re.DOTALL)
_PROGRAM = re.compile(
    r"\bswift[/.]cli[/.](?P<tool>_megatron[/.])?(?P<task>sft|pt|rlhf)(?:\.py)?\s(?P<said>.*)", re.DOTALL
)
_MEGATRON = ("megatron", "_megatron")
_MANY = ("recompute_modules", "freeze_parameters")


@dataclass(frozen=True)
class _Start:
    """A command that starts a run.

    Args:
        megatron: whether Megatron runs it.
        task: ``sft``, ``pt`` or ``rlhf``.
        said: its options, as text.
        processes: that are started, where it says them.
        gpus_each: that a process sees for itself, likewise.
        line: of the command.
    """

    megatron: bool
    task: str
    said: str
    processes: int | None
    gpus_each: int | None
    line: int


def is_swift_script(text: str) -> bool:
    """Whether a script starts ms-swift."""
    asked = "swift" in text or "megatron" in text
    return asked and any(_start(command) for command in read_commands(text))


def is_setting(key: str) -> bool:
    """Whether an override is one of the arguments."""
    return is_trainer_setting(key) or is_megatron_setting(key)


def read_swift_script(
    text: str, path: Path, overrides: Iterable[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with what a script starts.

    Raises:
        ConfigError: it trains by another method than the prediction of tokens, or like
            :func:`asap.experiments.swift.trainer.read_trainer`.
        UsageError: an override is not ``key=value``.
    """
    files = dict(brought or {})
    starts: list[_Start] = []
    before, open_ = list[Command](), dict[str, str]()
    for command in read_commands(with_sources(text, path.parent, brought)):
        files |= {} if starts else made_files([command])
        if (found := _start(command)) is not None:
            open_ = open_ if starts else undecided_options(before, command)
            starts.append(found)
        before.append(command)
    start = starts[0]
    if start.task == "rlhf":
        reason = "starts training on preferences or rewards, which is not modelled"
        raise ConfigError(reason, where=f"{path}:{start.line}", hint="give a run that trains on tokens")
    if not start.megatron and (start.gpus_each or 1) > 1:
        reason = f"splits the model layer by layer over {start.gpus_each} GPUs of each process, which is not modelled"
        hint = "add NPROC_PER_NODE=… to the command where each GPU has a process of its own"
        raise ConfigError(reason, where=f"{path}:{start.line}", hint=hint)
    said = with_file(_arguments(start.said) | open_, path, files)
    experiment = with_devices(start.processes, experiment)
    if start.megatron:
        read = read_megatron_swift(said, path, overrides, experiment)
    else:
        read = read_trainer(said, path, overrides, experiment, files)
    return with_note_on_others(read, path, len(starts), start.line)


def _start(command: Command) -> _Start | None:
    """The run that a command starts, itself or in a script that it has in quotes."""
    if command.assigns or not command.certain or not ("swift" in command.text or "megatron" in command.text):
        return None
    for candidate in (*commands_within(command), command):
        found = _COMMAND.search(candidate.text) or _PROGRAM.search(candidate.text)
        if found is not None and "--" in found["said"]:
            megatron = (found["tool"] or "").rstrip("/.") in _MEGATRON
            counts = processes_of(candidate), gpus_of_a_process(candidate)
            return _Start(megatron, found["task"], found["said"], *counts, command.line)
    return None


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
    return megatron.is_setting if TENSOR in values else trainer.is_setting


def read_arguments_file(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what the arguments say; raises like :func:`asap.experiments.swift.trainer.read_trainer`."""
    if values.get(_OF_PREFERENCES):
        reason = f"{_OF_PREFERENCES}: training on preferences or rewards is not modelled"
        raise ConfigError(reason, where=str(path), hint="give a run that trains on tokens")
    experiment = with_devices(digits(str(values.get(_PROCESSES, ""))), experiment)
    if TENSOR in values:
        return megatron.read_megatron_swift(values, path, overrides, experiment)
    return trainer.read_trainer(values, path, overrides, experiment)
