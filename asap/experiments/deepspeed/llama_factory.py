"""YAML of LLaMA-Factory, and others of Hugging Face's training arguments, that name a DeepSpeed configuration
(hiyouga/LLaMA-Factory, ``src/llamafactory/hparams``)."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import LARGEST_COUNT
from asap.experiments.deepspeed.named_configuration import read_named_configuration, with_note_on_shipped
from asap.experiments.deepspeed.reader import is_setting as is_deepspeed_setting
from asap.experiments.deepspeed.training_arguments import read_with_arguments
from asap.experiments.experiment import Experiment
from asap.experiments.processes import with_devices
from asap.experiments.training_program import check_arguments
from asap.stacks.deepspeed.settings import SEQUENCE
from asap.stacks.stack_settings import StackSettings, overriding
from asap.stacks.trainer.arguments import KEEP, RECOMPUTE, TRAINER_MICRO_BATCH

OF_FACTORY = "finetuning_type"
"""An argument that no other program has."""
_MARKS = frozenset((OF_FACTORY, "stage", "cutoff_len"))
_CONFIG = "deepspeed"
_DEFAULTS = {TRAINER_MICRO_BATCH: 8, "gradient_accumulation_steps": 1, "bf16": False, "fp16": False}
"""``TrainingArguments`` of transformers."""
_OF_FACTORY = {"stage": "sft", OF_FACTORY: "lora", "cutoff_len": 2048, KEEP: False}
_WORKERS = "ray_num_workers"
_STAGES, _DEPTHS = ("pt", "sft"), "mixture_of_depths"


def is_training_file(values: Mapping[str, Any]) -> bool:
    """Whether a mapping holds training arguments of a model."""
    return "model_name_or_path" in values and (TRAINER_MICRO_BATCH in values or values.get("do_train") is True)


def is_setting(key: str) -> bool:
    """Whether an override is one of the arguments, or of DeepSpeed's settings."""
    known = {*_DEFAULTS, *_OF_FACTORY, _CONFIG, "model_name_or_path", RECOMPUTE}
    return key in known or is_deepspeed_setting(key)


def in_words_of_trainer(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """LLaMA-Factory's arguments with its defaults, and what it recomputes in the Trainer's word; others as they are.

    Raises:
        ConfigError: they train by another method than prediction of tokens.
    """
    if not _MARKS & values.keys():
        return dict(values)
    stated = _OF_FACTORY | {key: value for key, value in values.items() if value is not None}
    arguments = StackSettings(stated, str(path))
    _check_stage(arguments)
    return {**stated, RECOMPUTE: not arguments.flag(KEEP)}


def with_workers(values: Mapping[str, Any], experiment: Experiment) -> Experiment:
    """``experiment`` with the devices of the workers that LLaMA-Factory has Ray start, where no hardware is said."""
    each = values.get("resources_per_worker")
    workers, gpus = values.get(_WORKERS), each.get("GPU", 1) if isinstance(each, dict) else 1
    devices = workers * gpus if isinstance(workers, int) and isinstance(gpus, int) else 0
    return with_devices(devices if 0 < devices <= LARGEST_COUNT else None, experiment)


def read_training_file(
    values: Mapping[str, Any],
    path: Path,
    overrides: Iterable[str],
    experiment: Experiment,
    *,
    of_yaml: bool = True,
) -> Experiment:
    """``experiment`` with what the arguments say, which are the top level of a YAML file or options of a command.

    Raises:
        ConfigError: they train adapters or by another method than prediction of tokens, or the DeepSpeed configuration
            is not named, not there or malformed.
        UsageError: an override is not ``key=value``.
    """
    experiment = with_workers(values, experiment)
    given = overriding(overrides)
    said = {**values, **{key: value for key, value in given.items() if not is_deepspeed_setting(key) or key in values}}
    rest = [f"{key}={value}" for key, value in given.items() if key not in said]
    of_factory = bool(_MARKS & said.keys())
    defaults = _DEFAULTS | (_OF_FACTORY if of_factory else {RECOMPUTE: False})
    arguments = StackSettings(defaults | {key: value for key, value in said.items() if value is not None}, str(path))
    if of_factory:
        _check_stage(arguments)
    check_arguments({key: arguments[key] for key in arguments if key != SEQUENCE}, path)
    configuration = read_named_configuration(arguments.get(_CONFIG), path)
    found = read_with_arguments(configuration, arguments, path, rest, experiment, of_yaml=of_yaml)
    found = with_note_on_shipped(found, arguments.get(_CONFIG), path)
    if of_factory and arguments.text("stage") == "sft" and not arguments.flag("packing"):
        note = f"sequences are cut at {arguments['cutoff_len']} tokens (cutoff_len); all are taken as that long"
        found = found.model_copy(update={"notes": (*found.notes, note)})
    return found


def _check_stage(arguments: StackSettings) -> None:
    if _DEPTHS in arguments:
        reason = f"{_DEPTHS}: layers that skip tokens are not modelled"
        raise ConfigError(reason, where=arguments.where(), hint="give a run without it")
    if arguments.text("stage") not in _STAGES:
        raise arguments.wrong("stage", f"one of {', '.join(_STAGES)}: others take more passes than a training step")
