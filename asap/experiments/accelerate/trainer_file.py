"""Arguments of Hugging Face's Trainer in a YAML file, as LLaMA-Factory's options, and as TRL's command line: under
DeepSpeed, the Trainer's ``fsdp`` or a configuration of Accelerate, else as replicas."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.accelerate.program import KINDS, PRESETS, of_command, of_trainer, with_file
from asap.experiments.accelerate.reader import LAUNCH_FILE, read_started, split_overrides
from asap.experiments.deepspeed.reader import is_setting as is_deepspeed_setting
from asap.experiments.deepspeed.training_arguments import TRAINER
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Brought, find_named
from asap.experiments.training_program import check_arguments, refuse
from asap.stacks.accelerate import stack as accelerate
from asap.stacks.accelerate.stack import KIND, OPTION
from asap.stacks.deepspeed.stack import IN_FILE
from asap.stacks.registry import abstract
from asap.stacks.stack_settings import StackSettings, dotted, overriding
from asap.stacks.trainer.arguments import KEEP, RECOMPUTE, TRAINER_MICRO_BATCH

OF_FACTORY = "finetuning_type"
"""An argument that no other program has."""
_FACTORY = abstract("llama-factory")
_DEFAULTS = {key: value for key, value in _FACTORY.defaults.items() if key not in TRAINER.defaults}
_DEEPSPEED = "deepspeed"


def is_training_file(values: Mapping[str, Any]) -> bool:
    """Whether a mapping holds training arguments of a model."""
    return "model_name_or_path" in values and (TRAINER_MICRO_BATCH in values or values.get("do_train") is True)


def in_words_of_trainer(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """LLaMA-Factory's arguments with its defaults, and what it recomputes in the Trainer's word; others as they are.

    Raises:
        ConfigError: they train by another method than prediction of tokens.
    """
    if not {*_FACTORY.files.own} & values.keys():
        return dict(values)
    stated = StackSettings(_DEFAULTS | {key: value for key, value in values.items() if value is not None}, str(path))
    refuse(_FACTORY, stated)
    return {**stated, RECOMPUTE: not stated.flag(KEEP)}


def read_trainer_file(
    values: Mapping[str, Any],
    of_yaml: bool,
    path: Path,
    overrides: Iterable[str],
    experiment: Experiment,
    alone: bool = False,
) -> Experiment:
    """``experiment`` with what the arguments say.

    Args:
        values: the arguments.
        of_yaml: whether they are the top level of a YAML file.
        path: the file that says them.
        overrides: ``key=value`` of the user.
        experiment: what is known besides, with the processes that are started.
        alone: no command starts them, so that they have to say how they are sharded.

    Raises:
        ConfigError: not all parameters are trained on tokens, or a file that is named is not there.
        UsageError: an override is not ``key=value``.
    """
    own, more, rest = split_overrides(overrides)
    given = {key: value for key, value in overriding(rest).items() if not is_deepspeed_setting(key) or key in values}
    written = with_file({**values, **more, **given}, path)
    stated = {key: value for key, value in in_words_of_trainer(written, path).items() if value is not None}
    check_arguments(stated, path)
    experiment = experiment.knowing(*_on_recomputation(written))
    started = any(stated.get(key) for key in (OPTION, LAUNCH_FILE, KIND, accelerate.PROCESSES)) or KIND in own
    if written.get(_DEEPSPEED) or (not started and (alone or _DEEPSPEED in written)):
        sharded = {KIND: "DEEPSPEED", IN_FILE: stated.get(_DEEPSPEED) or ""}
        assumed = {**TRAINER.defaults, "bf16": False, "fp16": False, RECOMPUTE: False}
        left = [override for override in rest if override.partition("=")[0] not in given]
        return read_started(sharded, assumed | stated, path, experiment, overrides=left, of_yaml=of_yaml)
    stated |= {} if LAUNCH_FILE in stated else {OPTION: stated.get(OPTION, "")}
    configuration = configuration_of(stated, path, {}) | of_command(stated) | own
    read = read_started(configuration, stated, path, experiment, overrides=rest, defaults=TRAINER.defaults)
    read = read.knowing(*notes_on_launch(stated, configuration))
    if not of_yaml or LAUNCH_FILE in stated:
        return read
    top = {TRAINER_MICRO_BATCH: stated.get(TRAINER_MICRO_BATCH, TRAINER.defaults[TRAINER_MICRO_BATCH])}
    return read.model_copy(update={"hyperparameters": read.hyperparameters | top})


def _on_recomputation(written: Mapping[str, Any]) -> list[str]:
    """The default that is assumed where a file does not say what is recomputed."""
    if {RECOMPUTE, KEEP} & written.keys():
        return []
    factory = bool({*_FACTORY.files.own} & written.keys())
    default = f"{KEEP}=false" if factory else f"{RECOMPUTE}=false (TRL has true)"
    return [f"not said, and taken as the program has it today: {default}"] if factory or _DEEPSPEED in written else []


TRL = re.compile(r"(?:^|\s)trl\s+(?!(?:env|chat|skills|vllm-serve|completion)(?:\s|$))([a-z][\w-]*)(?=\s|$)")
"""A command of TRL's that trains."""
_PROGRAM = re.compile(r"(?:^|/)trl/scripts/sft\.py$|^trl\.scripts\.sft$")
SFT = "sft"
_OF_SFT = abstract("trl").defaults
_ON_EIGHT = {accelerate.PROCESSES: 8, accelerate.MACHINES: 1, "mixed_precision": "bf16"}
_PROFILES = PRESETS["trl"]
"""Configurations of Accelerate that TRL brings along."""


def defaults_of(program: str) -> Mapping[str, Any]:
    """What a program takes where it is told nothing: that of TRL's own, as a file, a module or a command."""
    return _OF_SFT if program == SFT or _PROGRAM.search(program) else {}


def notes_on_launch(stated: Mapping[str, Any], configuration: Mapping[str, Any]) -> list[str]:
    """That a program of TRL's is taken as started by a configuration of TRL's own, or as replicas."""
    notes = []
    if not stated.keys() & {LAUNCH_FILE, OPTION, *KINDS} and configuration.get(accelerate.KIND) == "MULTI_GPU":
        notes.append(_REPLICAS)
    if str(stated.get(LAUNCH_FILE)) in _PROFILES:
        notes.append(
            f"{LAUNCH_FILE} {stated[LAUNCH_FILE]} is TRL's own: settings of Accelerate belong into a copy of it"
        )
    return notes


def configuration_of(stated: Mapping[str, Any], path: Path, brought: Brought) -> dict[str, Any]:
    """What Accelerate is told to take: a file, one of TRL's own, the Trainer's option, or replicas."""
    named = stated.get(LAUNCH_FILE)
    if named is None:
        return of_trainer(stated, path, brought)
    found = find_named(str(named), path, brought)
    if found is not None:
        return dotted(found.document().values)
    if str(named) in _PROFILES:
        return {**_ON_EIGHT, **_PROFILES[str(named)]}
    reason = f"names {LAUNCH_FILE} {plain(named, 60)}, which is neither a file nor one of TRL's"
    raise ConfigError(reason, where=str(path), hint=f"TRL's are {', '.join(_PROFILES)}")


_REPLICAS = (
    f"taken as replicas, as Accelerate starts it where nothing else is configured: add {LAUNCH_FILE}=FILE.yaml, or"
    " one of TRL's such as fsdp2"
)
