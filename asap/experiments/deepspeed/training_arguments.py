"""Arguments of Hugging Face's Trainer beside a DeepSpeed configuration: what they fill, and what they say of the run.

What the configuration leaves to the launcher (``auto``) is what the arguments say (``TrainingArguments``,
huggingface.co/docs/transformers/main_classes/deepspeed).
"""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.experiments.attention_variants import note_on_attention
from asap.experiments.deepspeed.reader import RECOMPUTATION_UNKNOWN, read_deepspeed
from asap.experiments.experiment import Experiment
from asap.experiments.named_model import name_at_end, read_named_model
from asap.experiments.settings.remarks import in_words_of_program
from asap.experiments.settings.trainer_numerics import ATTENTION, TRAINER, loaded_in_bf16, of_program, sequence_length
from asap.experiments.shell import has_substitution
from asap.plans import Remat
from asap.stacks.deepspeed.settings import ACCUMULATION, MICRO_BATCH
from asap.stacks.registry import abstract
from asap.stacks.stack_settings import StackSettings
from asap.stacks.trainer.arguments import AUTO, KEEP, RECOMPUTE, SECTION, TRAINER_ACCUMULATION, TRAINER_MICRO_BATCH

_MODEL = TRAINER.model.name.keys if TRAINER.model.name else ()
_FILLED = {
    MICRO_BATCH: TRAINER_MICRO_BATCH,
    ACCUMULATION: TRAINER_ACCUMULATION,
    "bf16.enabled": "bf16",
    "fp16.enabled": "fp16",
    "sequence_parallel_size": "sequence_parallel_size",
}
"""DeepSpeed's settings by the argument that fills them."""
_CONFIGURATION = "deepspeed"
"""The argument that names DeepSpeed's configuration: a file, or one of the launcher's own."""


def read_with_arguments(
    configuration: Mapping[str, Any],
    arguments: StackSettings,
    path: Path,
    overrides: Iterable[str],
    experiment: Experiment,
    unsaid: frozenset[str] = frozenset(),
    *,
    of_yaml: bool = False,
) -> Experiment:
    """``experiment`` with a DeepSpeed configuration and the arguments that it is started with.

    Args:
        configuration: by dotted key.
        arguments: by name.
        path: the file that says them.
        overrides: ``key=value`` of the user.
        experiment: what is known besides.
        unsaid: arguments whose value only a run can tell.
        of_yaml: the arguments are the top level of a YAML file.

    Raises:
        ConfigError: a value of the wrong kind.
        UsageError: an override is not ``key=value``.
    """
    values = {**configuration, **_fillings(configuration, arguments, unsaid)}
    found = read_deepspeed(values, path, overrides, with_model(arguments, experiment))
    if found.plan is not None and (RECOMPUTE in arguments or KEEP in arguments):
        keeps = arguments.flag(KEEP) if KEEP in arguments else not arguments.flag(RECOMPUTE)
        found = _with_recomputation(found, Remat.NONE if keeps else Remat.FULL)
    if TRAINER_MICRO_BATCH in arguments:
        settings = _recorded(found.hyperparameters, configuration, arguments, of_yaml)
        found = found.model_copy(update={"hyperparameters": settings})
    notes = (*note_on_attention(arguments), *in_words_of_program(found.notes))
    found = found.model_copy(update={"notes": notes})
    said = {
        "sequence_length": sequence_length(arguments),
        "precision": _precision(arguments, found.workload.precision),
        **of_program(arguments),
    }
    if found.workload.optimizer is not None or TRAINER_MICRO_BATCH not in arguments:
        said.pop("optimizer")
    workload = found.workload.model_copy(update={key: value for key, value in said.items() if value is not None})
    return found.model_copy(update={"workload": workload})


def _precision(arguments: StackSettings, enabled: str | None) -> str | None:
    """What arguments say beside DeepSpeed's configuration, which casts nothing where it enables nothing."""
    if arguments.flag("fp8"):
        return "fp8"
    return "bf16" if enabled == "fp32" and loaded_in_bf16(arguments) else None


def settled(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments without those that only a run can tell, or that say no model; of a model's folder below a variable the
    name is enough."""
    found = {
        key: name_at_end(value) if key in _MODEL and isinstance(value, str) else value
        for key, value in stated.items()
        if key in _MODEL or not has_substitution(str(value))
    }
    found = {key: value for key, value in found.items() if not (key in _MODEL and value is True)}
    return {key: value for key, value in found.items() if value is not None or stated[key] is None}


def _recorded(
    read: Mapping[str, Any], configuration: Mapping[str, Any], arguments: StackSettings, of_yaml: bool
) -> dict[str, Any]:
    """Settings for the record: ``auto`` where the configuration says so, and the arguments in their own place."""
    said = {key: arguments[key] for key in (TRAINER_MICRO_BATCH, RECOMPUTE, KEEP, *ATTENTION) if key in arguments}
    left_open = {MICRO_BATCH: AUTO} if configuration.get(MICRO_BATCH) == AUTO else {}
    if of_yaml:
        return {**read, **left_open, **said}
    if configuration.get(ACCUMULATION) == AUTO:
        left_open[ACCUMULATION] = AUTO
    said[TRAINER_ACCUMULATION] = read.get(ACCUMULATION, 1)
    named = arguments.get(_CONFIGURATION)
    if isinstance(named, str) and not named.endswith(".json") and configuration:
        said[_CONFIGURATION] = named
    return {**read, **left_open, **{f"{SECTION}.{key}": value for key, value in said.items()}}


def _fillings(configuration: Mapping[str, Any], arguments: StackSettings, unsaid: frozenset[str]) -> dict[str, Any]:
    """What arguments fill; gradients of one microbatch, the Trainer's default, where none says accumulation."""
    once = TRAINER_MICRO_BATCH in arguments and TRAINER_ACCUMULATION not in (*arguments, *unsaid)
    default = {ACCUMULATION: 1} if once and configuration.get(ACCUMULATION) == AUTO else {}
    filled = default | {key: arguments[name] for key, name in _FILLED.items() if name in arguments}
    return filled | {key: "auto" for key, name in _FILLED.items() if name in unsaid and key not in filled}


def _with_recomputation(experiment: Experiment, remat: Remat) -> Experiment:
    assert experiment.plan is not None
    notes = tuple(note for note in experiment.notes if note != RECOMPUTATION_UNKNOWN)
    plan = experiment.plan.model_copy(update={"remat": remat})
    return experiment.model_copy(update={"plan": plan, "notes": notes})


def with_model(arguments: StackSettings, experiment: Experiment) -> Experiment:
    """``experiment`` with the model that the arguments name, where none is said."""
    name = next((arguments.text(key) for key in _MODEL if key in arguments), None)
    if name is None or experiment.model is not None:
        return experiment
    model, notes = read_named_model(name)
    return experiment.model_copy(update={"model": model, "notes": (*experiment.notes, *notes)})


_OF_TRAINER, _OF_TRL = ({*abstract(folder).files.own} for folder in ("trainer", "trl"))
"""Arguments that programs without the Trainer do not have, and those of ``SFTConfig``, which recomputes unless told
otherwise in some versions and not in others."""
_SAYS_RECOMPUTATION = re.compile(r"checkpointing$|grad\w{0,40}_(?:checkpoint|ckpt)|recompute")


def defaults_under(arguments: Mapping[str, Any], program: str, unsaid: Collection[str] = ()) -> Mapping[str, Any]:
    """No recomputation, where a command has arguments of the Trainer and none that says it.

    Args:
        arguments: by name.
        program: that takes them.
        unsaid: arguments whose value only a run can tell.
    """
    said = {*arguments, *unsaid}
    of_trainer = TRAINER_MICRO_BATCH in said and not said.isdisjoint(_OF_TRAINER)
    if not of_trainer or not said.isdisjoint(_OF_TRL) or "sft" in program.rpartition("/")[2].casefold():
        return {}
    return {} if any(_SAYS_RECOMPUTATION.search(key) for key in said) else {RECOMPUTE: False}


def note_on(defaults: Mapping[str, Any]) -> tuple[str, ...]:
    """What was taken for said; nothing where nothing was."""
    if not defaults:
        return ()
    return (f"{RECOMPUTE} is not said, and taken as off, as the Trainer has it: add {RECOMPUTE}=true if it is on",)
