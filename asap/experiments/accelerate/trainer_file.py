"""Arguments of Hugging Face's Trainer in a YAML file, as LLaMA-Factory's options, and as TRL's command line: under
DeepSpeed, the Trainer's ``fsdp`` or a configuration of Accelerate, else as replicas."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.numbers import LARGEST_COUNT
from asap.experiments.accelerate.program import of_trainer
from asap.experiments.accelerate.reader import read_started, split_overrides
from asap.experiments.deepspeed.reader import is_setting as is_deepspeed_setting
from asap.experiments.deepspeed.training_arguments import TRAINER
from asap.experiments.experiment import Experiment
from asap.experiments.processes import with_devices
from asap.experiments.training_program import refuse
from asap.stacks.accelerate.stack import KIND, OPTION
from asap.stacks.deepspeed.stack import IN_FILE
from asap.stacks.registry import abstract
from asap.stacks.stack_settings import StackSettings, overriding
from asap.stacks.trainer.arguments import KEEP, RECOMPUTE, TRAINER_MICRO_BATCH

OF_FACTORY = "finetuning_type"
"""An argument that no other program has."""
_FACTORY = abstract("llama-factory")
_DEFAULTS = {key: value for key, value in _FACTORY.defaults.items() if key not in TRAINER.defaults}
_DEEPSPEED, _WORKERS = "deepspeed", "ray_num_workers"


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


def read_alone(values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with a YAML that no command starts, which has to say how it is sharded; raises like
    :func:`read_trainer_file`."""
    sharded = values.get(OPTION) and not values.get(_DEEPSPEED)
    return read_trainer_file(values if sharded else {_DEEPSPEED: None, **values}, True, path, overrides, experiment)


def read_trainer_file(
    values: Mapping[str, Any], of_yaml: bool, path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what the arguments say.

    Args:
        values: the arguments.
        of_yaml: whether they are the top level of a YAML file.
        path: the file that says them.
        overrides: ``key=value`` of the user.
        experiment: what is known besides, with the processes that are started.

    Raises:
        ConfigError: not all parameters are trained on tokens, or a file that is named is not there.
        UsageError: an override is not ``key=value``.
    """
    experiment = _with_workers(values, experiment)
    own, more, rest = split_overrides(overrides)
    given = {key: value for key, value in overriding(rest).items() if not is_deepspeed_setting(key) or key in values}
    written = {**values, **more, **given}
    experiment = experiment.knowing(*_on_recomputation(written))
    stated = in_words_of_trainer(written, path)
    stated = {key: value for key, value in stated.items() if value is not None}
    if _DEEPSPEED in {**values, **more}:
        sharded = {KIND: "DEEPSPEED", IN_FILE: stated.get(_DEEPSPEED) or ""}
        assumed = {**TRAINER.defaults, "bf16": False, "fp16": False, RECOMPUTE: False}
        left = [override for override in rest if override.partition("=")[0] not in given]
        return read_started(sharded, assumed | stated, path, experiment, overrides=left, of_yaml=of_yaml)
    stated = {OPTION: "", **stated}
    read = read_started(of_trainer(stated, path, {}) | own, stated, path, experiment, defaults=TRAINER.defaults)
    if not of_yaml:
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


def _with_workers(values: Mapping[str, Any], experiment: Experiment) -> Experiment:
    """``experiment`` with the devices of the workers that LLaMA-Factory has Ray start, where no hardware is said."""
    each = values.get("resources_per_worker")
    workers, gpus = values.get(_WORKERS), each.get("GPU", 1) if isinstance(each, dict) else 1
    devices = workers * gpus if isinstance(workers, int) and isinstance(gpus, int) else 0
    return with_devices(devices if 0 < devices <= LARGEST_COUNT else None, experiment)


_PROGRAM = re.compile(r"(?:^|/)trl/scripts/sft\.py$|^trl\.scripts\.sft$")
_OF_SFT = abstract("trl").defaults


def defaults_of(program: str) -> Mapping[str, Any]:
    """What a program takes where it is told nothing: that of TRL's own, as a file or a module."""
    return _OF_SFT if _PROGRAM.search(program) else {}
