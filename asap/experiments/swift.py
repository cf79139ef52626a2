"""ms-swift: arguments of ``swift sft`` and ``swift pt``, the Trainer's with its own names, defaults and configurations
(modelscope/ms-swift, ``swift/llm/argument/train_args.py``, ``swift/config``), those of ``megatron sft`` (table
``megatron-swift``), and scripts and files of either kind.
"""

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import digits
from asap.experiments.accelerate.arguments import add_file, mapping_of, settled, split_overrides
from asap.experiments.accelerate.arguments import is_setting as is_argument
from asap.experiments.accelerate.arguments import said as options_said
from asap.experiments.accelerate.program import DEEPSPEED, PRESETS, Program, read_program
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Brought
from asap.experiments.launch.refusal import refuse
from asap.experiments.processes import gpus_of_a_process, processes_of, set_devices
from asap.experiments.shell import Command, Start
from asap.experiments.tables.reader import read_table
from asap.stacks.accelerate.stack import KIND, OPTION, SIZES
from asap.stacks.deepspeed.stack import IN_FILE, SEQUENCE
from asap.stacks.megatron.degrees import TENSOR
from asap.stacks.registry import spec
from asap.stacks.rules import meant
from asap.stacks.stack_settings import StackSettings, overriding
from asap.stacks.trainer.arguments import RECOMPUTE, TRAINER_ACCUMULATION, TRAINER_MICRO_BATCH

_TABLE = spec("swift")
_OWN = frozenset((*_TABLE.by_code, *_TABLE.renamed))
_FSDP = "fsdp_config"
_BATCH = 16  # sequences that a step has at least, where accumulation is not said
_UNSAID_TYPE = "torch_dtype is not said, and taken as bf16: the model's config.json decides it"


def _read(
    said: Mapping[str, Any], by_megatron: bool, path: Path, overrides: Iterable[str], experiment: Experiment,
    brought: Brought,
) -> Experiment:  # fmt: skip
    """``experiment`` with what the arguments say, of Megatron's table or of the Trainer's."""
    if by_megatron:
        refuse(_TABLE, StackSettings({**said, **overriding(overrides)}, str(path)))
        return read_table(spec("megatron-swift"), said, path, overrides, experiment)
    _, more, _ = split_overrides(overrides := tuple(overrides))
    stated = {_TABLE.renamed.get(key, key): value for key, value in {**said, **more}.items() if value is not None}
    known = settled(stated)
    unsaid = {key: str(value) for key, value in stated.items() if key not in known}
    arguments = StackSettings(_add_defaults(known, unsaid, experiment), str(path))
    refuse(_TABLE, arguments)
    stated = dict(arguments)
    launched: dict[str, Any] = {}
    if DEEPSPEED in arguments:
        launched = {KIND: "DEEPSPEED", IN_FILE: arguments[DEEPSPEED]}
    else:
        stated |= _fsdp_settings(stated, path, brought)
        shared = stated.pop(SEQUENCE, 1)  # GPUs that share a sequence are context parallelism
        launched = {f"{SIZES}.{SIZES}_cp_size": shared} if str(shared) != "1" else {}
    rest = [text for text in overrides if text.partition("=")[0] not in more]
    read = read_program(Program(path, stated | unsaid, launched, brought), rest, experiment)
    if read.plan is not None and read.plan.degree("seq") > 1:
        read = read.knowing(workload=read.workload.model_copy(update={"context_parallel": "ulysses"}))
    return read if {"torch_dtype", "dtype"} & said.keys() else read.knowing(_UNSAID_TYPE)


def _fsdp_settings(stated: Mapping[str, Any], path: Path, brought: Brought) -> dict[str, Any]:
    """The Trainer's arguments of FSDP that ms-swift's name or file of them stands for; recomputation is FSDP's own."""
    named = str(stated.get(OPTION))
    found = PRESETS["swift"].get(named, {})
    if named.endswith(".json"):
        found = mapping_of(stated, OPTION, path, brought)
    own = {key: found[key] for key in (OPTION, _FSDP) if key in found}
    return own | ({RECOMPUTE: False} if (own.get(_FSDP) or {}).get("activation_checkpointing") else {})


def _add_defaults(stated: Mapping[str, Any], unsaid: Mapping[str, str], experiment: Experiment) -> dict[str, Any]:
    """Arguments with ms-swift's defaults; mixed precision goes by the type that the model is loaded as."""
    defaults = {key: _TABLE.defaults[key] for key in (TRAINER_MICRO_BATCH, RECOMPUTE) if key not in unsaid}
    whole = {**defaults, **stated, **meant(_TABLE.means, stated)}
    devices, each = experiment.hardware.devices, str(whole.get(TRAINER_MICRO_BATCH, ""))
    if TRAINER_ACCUMULATION not in {*whole, *unsaid} and devices and each.isdecimal() and int(each):
        whole[TRAINER_ACCUMULATION] = max(1, math.ceil(_BATCH / int(each) / devices))
    return whole


_COMMAND = re.compile(
    r"(?:(?:^|[\s/])(?:swift|(?P<tool>megatron))\s+|\bswift[/.]cli[/.](?P<module>_megatron[/.])?)"
    r"(?P<task>sft|pt|rlhf)(?:\.py)?\s(?P<said>.*)",
    re.DOTALL,
)


def is_setting(key: str) -> bool:
    """Whether an override is one of the arguments, or of DeepSpeed's settings."""
    return is_argument(key) or key.startswith("--") or key in _OWN | spec("megatron-swift").words


def starts(command: Command) -> bool:
    """Whether a command starts ms-swift."""
    return _start(command) is not None


def read_swift_script(start: Start, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what a script starts.

    Raises:
        ConfigError: it trains by another method than the prediction of tokens, not all parameters, or a value or a file
            is not as named.
        UsageError: an override is not ``key=value``.
    """
    found, command = _start(start.command), start.command
    assert found is not None
    by_megatron, each = bool(found["tool"] or found["module"]), gpus_of_a_process(command)
    if found["task"] == "rlhf":
        reason = "starts training on preferences or rewards, which is not modelled"
        raise ConfigError(reason, where=start.where, hint="give a run that trains on tokens")
    if not by_megatron and (each or 1) > 1:
        reason = f"splits the model layer by layer over {each} GPUs of each process, which is not modelled"
        hint = "add NPROC_PER_NODE=… to the command where each GPU has a process of its own"
        raise ConfigError(reason, where=start.where, hint=hint)
    said = add_file(options_said(found["said"]) | start.undecided, start.path, start.files)
    experiment = set_devices(processes_of(command), experiment)
    return _read(said, by_megatron, start.path, overrides, experiment, start.files)


def _start(command: Command) -> re.Match[str] | None:
    found = _COMMAND.search(command.text)
    return found if found is not None and "--" in found["said"] else None


_VERSION, _PROCESSES = "swift_version", "global_world_size"


def is_arguments_file(values: Mapping[str, Any]) -> bool:
    """Whether a mapping holds the arguments of a run."""
    return _VERSION in values and ("model" in values or "model_type" in values)


def read_arguments_file(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what the arguments say; raises like :func:`read_swift_script`."""
    experiment = set_devices(digits(str(values.get(_PROCESSES, ""))), experiment)
    return _read(values, TENSOR in values, path, overrides, experiment, {})
