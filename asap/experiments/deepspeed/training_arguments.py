"""Arguments of Hugging Face's Trainer beside a DeepSpeed configuration: what they fill, and what they say of the run.

What the configuration leaves to the launcher (``auto``) is what the arguments say (``TrainingArguments``,
huggingface.co/docs/transformers/main_classes/deepspeed).
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.deepspeed.reader import RECOMPUTATION_UNKNOWN, read_deepspeed
from asap.experiments.experiment import Experiment
from asap.experiments.stack_settings import StackSettings
from asap.models import find_architecture
from asap.plans import Remat
from asap.plans.deepspeed.settings import KEEP, RECOMPUTE, TRAINER_MICRO_BATCH

_MODEL = ("model_name_or_path", "model_name", "model_id", "model")
_SEQUENCE = ("max_seq_len", "max_seq_length", "model_max_length", "block_size", "cutoff_len", "max_length")
_FILLED = {
    "train_micro_batch_size_per_gpu": TRAINER_MICRO_BATCH,
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "bf16.enabled": "bf16",
    "fp16.enabled": "fp16",
    "zero_optimization.stage": "zero_stage",
    "sequence_parallel_size": "sequence_parallel_size",
}
"""DeepSpeed's settings by the argument that fills them."""
_ADAPTERS = ("use_peft", "use_lora", "lora_dim", "lora_enable", "qlora")
_PARTS = ("lora", "oft", "freeze")


def read_with_arguments(
    configuration: Mapping[str, Any],
    arguments: StackSettings,
    path: Path,
    overrides: Iterable[str],
    experiment: Experiment,
    unsaid: frozenset[str] = frozenset(),
) -> Experiment:
    """``experiment`` with a DeepSpeed configuration and the arguments that it is started with.

    Args:
        configuration: by dotted key.
        arguments: by name.
        path: the file that says them.
        overrides: ``key=value`` of the user.
        experiment: what is known besides.
        unsaid: arguments whose value only a run can tell.

    Raises:
        ConfigError: a value of the wrong kind, or not all parameters are trained.
        UsageError: an override is not ``key=value``.
    """
    check_trains_all(arguments)
    values = {**configuration, **_fillings(arguments, unsaid)}
    found = read_deepspeed(values, path, overrides, _with_model(arguments, experiment))
    if found.plan is not None and (RECOMPUTE in arguments or KEEP in arguments):
        keeps = arguments.flag(KEEP) if KEEP in arguments else not arguments.flag(RECOMPUTE)
        found = _with_recomputation(found, Remat.NONE if keeps else Remat.FULL)
    if TRAINER_MICRO_BATCH in arguments:
        said = {key: arguments[key] for key in (TRAINER_MICRO_BATCH, RECOMPUTE, KEEP) if key in arguments}
        found = found.model_copy(update={"hyperparameters": found.hyperparameters | said})
    sequence = next((arguments.count(key) for key in _SEQUENCE if key in arguments), None)
    said = {"sequence_length": sequence, "precision": "fp8" if arguments.flag("fp8") else None}
    workload = found.workload.model_copy(update={key: value for key, value in said.items() if value is not None})
    return found.model_copy(update={"workload": workload})


def check_trains_all(arguments: StackSettings) -> None:
    """Raise ConfigError where adapters or a part of the layers are trained."""
    said = next((key for key in _ADAPTERS if str(arguments.get(key, 0)).casefold() not in ("0", "false", "none")), None)
    if said is None and str(arguments.get("finetuning_type")).casefold() in _PARTS:
        said = "finetuning_type"
    if said is not None:
        reason = f"{said}={plain(str(arguments[said]), 20)}: training a part of the parameters is not modelled"
        raise ConfigError(reason, where=arguments.where(said), hint="give a run that trains all of them")


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
