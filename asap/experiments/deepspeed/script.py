"""Scripts that start DeepSpeed: ``deepspeed --num_gpus 8 train.py --deepspeed ds_config.json …``.

The configuration is the file that the command names, beside the script or written by it, or the ZeRO stage of
DeepSpeed-Chat's arguments; what it leaves to the launcher (``auto``) is what Hugging Face's arguments say
(``TrainingArguments``, huggingface.co/docs/transformers/main_classes/deepspeed).
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.deepspeed.reader import RECOMPUTATION_UNKNOWN, read_deepspeed
from asap.experiments.documents import read_document
from asap.experiments.experiment import Experiment
from asap.experiments.shell import Command, has_substitution, options, read_commands, with_sources
from asap.experiments.stack_settings import StackSettings, dotted
from asap.models import find_architecture
from asap.plans import Remat
from asap.plans.deepspeed.settings import RECOMPUTE, TRAINER_MICRO_BATCH

_LAUNCHER = re.compile(r"(?:^|[\s/])deepspeed\s|\s--deepspeed(?:_config)?[\s=]")
_CONFIG = ("deepspeed_config", "deepspeed")
_MODEL = ("model_name_or_path", "model_name", "model_id", "model")
_SEQUENCE = ("max_seq_len", "max_seq_length", "model_max_length", "block_size", "cutoff_len")
_FILLED = {
    "train_micro_batch_size_per_gpu": "per_device_train_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "bf16.enabled": "bf16",
    "fp16.enabled": "fp16",
    "zero_optimization.stage": "zero_stage",
    "sequence_parallel_size": "sequence_parallel_size",
}
"""DeepSpeed's settings by the argument that fills them."""


def is_deepspeed_script(text: str) -> bool:
    """Whether a script has a command that starts DeepSpeed."""
    return _LAUNCHER.search(text) is not None and any(_is_start(command) for command in read_commands(text))


def read_deepspeed_script(text: str, path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what a script starts.

    Raises:
        ConfigError: the configuration is not beside the script, malformed, or none.
        UsageError: an override is not ``key=value``.
    """
    commands = list(read_commands(with_sources(text, path.parent)))
    start = next(command for command in commands if _is_start(command))
    said = {option.name: option.words[0] if option.words else True for option in options(start.text)}
    arguments = StackSettings(
        {key: value for key, value in said.items() if not has_substitution(str(value))}, str(path)
    )
    values = _configuration(said, commands, path) | _fillings(arguments, _unsaid(said))
    experiment = _with_devices(arguments, _with_model(arguments, experiment))
    found = read_deepspeed(values, path, overrides, experiment)
    if found.plan is not None and RECOMPUTE in arguments:
        found = _with_recomputation(found, Remat.FULL if arguments.flag(RECOMPUTE) else Remat.NONE)
    said_to_trainer = {key: arguments[key] for key in (TRAINER_MICRO_BATCH, RECOMPUTE) if key in arguments}
    if TRAINER_MICRO_BATCH in arguments:
        found = found.model_copy(update={"hyperparameters": found.hyperparameters | said_to_trainer})
    sequence = next((arguments.count(key) for key in _SEQUENCE if key in arguments), None)
    workload = found.workload.model_copy(update={"sequence_length": sequence or found.workload.sequence_length})
    return found.model_copy(update={"workload": workload})


def _is_start(command: Command) -> bool:
    starts = _LAUNCHER.search(f"{command.text} ") is not None and ".py" in command.text
    return starts and command.certain and not command.assigns


def _unsaid(said: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(key for key, value in said.items() if has_substitution(str(value)))


def _configuration(arguments: Mapping[str, Any], commands: list[Command], path: Path) -> dict[str, Any]:
    """The settings of the file that the command names, by dotted key."""
    name = next((str(arguments[key]) for key in _CONFIG if str(arguments.get(key, "")).endswith(".json")), None)
    if name is None and "zero_stage" in arguments:
        return {}
    if name is None:
        reason = "starts DeepSpeed without naming its configuration"
        raise ConfigError(reason, where=str(path), hint="give the DeepSpeed JSON as --config, with model=NAME")
    written = next((c for c in commands if c.document and name in c.text.partition(">")[2].split()), None)
    if written is not None:
        return dotted(_parsed(written, path))
    beside = path.parent / Path(name).name
    if not beside.is_file():
        hint = f"lay it there, or give {plain(Path(name).name, 60)} as --config, with model=NAME and --hardware"
        raise ConfigError(
            f"starts DeepSpeed with {plain(name, 80)}, which is not beside it", where=str(path), hint=hint
        )
    return dotted(read_document(beside).values)


def _parsed(written: Command, path: Path) -> dict[str, Any]:
    try:
        values = json.loads(written.document)
    except (ValueError, RecursionError) as error:
        where = f"{path}:{written.line}"
        raise ConfigError("writes a DeepSpeed configuration that cannot be read", where=where) from error
    if not isinstance(values, dict):
        raise ConfigError("writes a DeepSpeed configuration that is no mapping", where=f"{path}:{written.line}")
    return values


def _fillings(arguments: StackSettings, unsaid: frozenset[str]) -> dict[str, Any]:
    filled = {key: arguments[name] for key, name in _FILLED.items() if name in arguments}
    return filled | {key: "auto" for key, name in _FILLED.items() if name in unsaid and key not in filled}


def _with_recomputation(experiment: Experiment, remat: Remat) -> Experiment:
    assert experiment.plan is not None
    notes = tuple(note for note in experiment.notes if note != RECOMPUTATION_UNKNOWN)
    plan = experiment.plan.model_copy(update={"remat": remat})
    return experiment.model_copy(update={"plan": plan, "notes": notes})


def _with_model(arguments: StackSettings, experiment: Experiment) -> Experiment:
    name = next((arguments.text(key) for key in _MODEL if key in arguments), None)
    known = find_architecture(name) if name and experiment.model is None else None
    if known is None:
        return experiment
    return experiment.model_copy(update={"model": known})


def _with_devices(arguments: StackSettings, experiment: Experiment) -> Experiment:
    if experiment.hardware.devices is not None or "num_gpus" not in arguments:
        return experiment
    devices = (arguments.count("num_gpus") or 1) * (arguments.count("num_nodes") or 1)
    return experiment.model_copy(update={"hardware": experiment.hardware.model_copy(update={"devices": devices})})
