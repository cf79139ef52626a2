"""Arguments of Hugging Face's Trainer that a program is started with under torchrun, from its YAML alone or as
LLaMA-Factory's options: with DeepSpeed, with the Trainer's ``fsdp``, else as replicas."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.experiments.accelerate.reader import is_setting as is_accelerate_setting
from asap.experiments.accelerate.reader import read_started, split_overrides
from asap.experiments.accelerate.workload import of_trainer
from asap.experiments.deepspeed import llama_factory
from asap.experiments.experiment import Experiment
from asap.stacks.accelerate.stack import OPTION
from asap.stacks.stack_settings import overriding
from asap.stacks.trainer.arguments import TRAINER_ACCUMULATION, TRAINER_MICRO_BATCH

_DEEPSPEED = "deepspeed"
_DEFAULTS = {TRAINER_MICRO_BATCH: 8, TRAINER_ACCUMULATION: 1}
"""``TrainingArguments`` of transformers."""


def is_setting(key: str) -> bool:
    """Whether an override is one of the arguments, or of DeepSpeed's settings."""
    return is_accelerate_setting(key) or llama_factory.is_setting(key)


def shards_by_trainer(values: Mapping[str, Any]) -> bool:
    """Whether arguments say the Trainer's FSDP, and no DeepSpeed configuration."""
    return bool(values.get(OPTION)) and not values.get(_DEEPSPEED)


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
    overrides = list(overrides)
    if _DEEPSPEED in {**values, **overriding(overrides)}:
        return llama_factory.read_training_file(values, path, overrides, experiment, of_yaml=of_yaml)
    experiment = llama_factory.with_workers(values, experiment)
    own, more, rest = split_overrides(overrides)
    stated = llama_factory.in_words_of_trainer({**values, **more, **overriding(rest)}, path)
    stated = {OPTION: "", **{key: value for key, value in stated.items() if value is not None}}
    read = read_started(of_trainer(stated, path, {}) | own, stated, path, experiment, defaults=_DEFAULTS)
    if not of_yaml:
        return read
    top = {TRAINER_MICRO_BATCH: stated.get(TRAINER_MICRO_BATCH, _DEFAULTS[TRAINER_MICRO_BATCH])}
    return read.model_copy(update={"hyperparameters": read.hyperparameters | top})
