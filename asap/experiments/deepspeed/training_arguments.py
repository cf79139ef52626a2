"""Arguments of Hugging Face's Trainer: their numerics, and what they fill and say beside a DeepSpeed configuration."""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.numbers import digits
from asap.core.text import plain
from asap.experiments.deepspeed.reader import RECOMPUTATION_UNKNOWN, read_deepspeed
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import blamed_on
from asap.experiments.huggingface_model import name_at_end, read_named_model
from asap.experiments.remarks import (
    in_words_of_program,
    moments_of_bits,
    note_on_attention,
    optimizer_family,
    table_notes,
)
from asap.experiments.shell import has_substitution
from asap.plans import Remat
from asap.stacks.deepspeed.stack import ACCUMULATION, MICRO_BATCH, SEQUENCE, TENSOR
from asap.stacks.reading import field_of, is_on
from asap.stacks.registry import abstract
from asap.stacks.spec import word_keys
from asap.stacks.stack_settings import StackSettings, dotted
from asap.stacks.trainer.arguments import AUTO, KEEP, RECOMPUTE, SECTION, TRAINER_ACCUMULATION, TRAINER_MICRO_BATCH

TRAINER = abstract("trainer")
_FIELDS = ("optimizer", "attention", "fused_linear_cross_entropy", "compiled")
ATTENTION = tuple(dict.fromkeys(word_keys(TRAINER.workload["attention"])))
SEQUENCE_NAMES = word_keys(TRAINER.workload["sequence_length"])
_OF_PROGRAM = re.compile(r"(?:use_|enable_)?(?:compile(?:_model)?|(?:cpu_|activation_)?offload(?:_\w+)?)")
"""Switches of a program's own that change the step and that no library has."""
_TRAINED = re.compile(
    r"(?!.*(?:vit|vision|visual|image|audio|align|project))"
    r"(?:(?:\w+_)?(?:freeze|frozen|teacher|distil\w*)(?:_\w+)?|(?:train|tune|update)_only(?:_\w+)?|only_(?:train|tune)\w*)"
)
"""Arguments of a program's own that say which parameters of a decoder are trained, or by which other model."""
_OFF = ("", "0", "0.0", "false", "no", "none", "null", "[]")


def precision(said: StackSettings, settings: StackSettings) -> str | None:
    """Of matrix products: the program's own argument wins over Accelerate's ``mixed_precision``; ``None`` where the
    arguments are not known, or neither is said and the program, which is not the Trainer, decides it."""
    mixed = _mixed(said, settings)
    if mixed != "no":
        return mixed
    if loaded_in_bf16(said):
        return "bf16"
    stated = "mixed_precision" in {*said, *settings} or TRAINER_MICRO_BATCH in said
    return "fp32" if said and stated else None


def weight_precision(said: StackSettings, settings: StackSettings, sharded: bool) -> str | None:
    """``bf16`` where weights stay as they are loaded: FSDP turns them into fp32 under mixed precision
    (accelerate, ``accelerator.py`` and ``utils/fsdp_utils.py``)."""
    kept = loaded_in_bf16(said) and not (sharded and _mixed(said, settings) != "no")
    return "bf16" if kept else None


def of_program(said: StackSettings) -> dict[str, Any]:
    """Fields of a workload, those that are said; the Trainer's optimizer and its loss where nothing else is."""
    flat = dotted(said)
    found = {field: field_of(TRAINER, field, flat) for field in _FIELDS}
    named = found["optimizer"]
    found |= {"optimizer": optimizer_family(named), **moments_of_bits(named)}
    found |= {"compiled_loss": bool(found["compiled"])} if TRAINER_MICRO_BATCH in said else {}
    return {field: value for field, value in found.items() if value is not None}


def notes_on(said: StackSettings) -> tuple[str, ...]:
    """What is modelled otherwise than it runs."""
    own = [key for key in sorted(said) if _OF_PROGRAM.fullmatch(key) and is_on(said, key)]
    own += [key for key in sorted(said) if _TRAINED.fullmatch(key) and str(said[key]).casefold() not in _OFF]
    shown = ", ".join(f"--{plain(key, 40)}" for key in own)
    unread = (f"not read, as only the program knows what it changes: {shown}",) if own else ()
    length = digits(str(TRAINER.cut.said(said))) if TRAINER.cut and not said.flag("packing") else None
    return (*unread, *table_notes(TRAINER, said, length))


def _mixed(said: StackSettings, settings: StackSettings) -> str:
    both = {key: value for key, value in {**settings, **said}.items() if not has_substitution(str(value))}
    with blamed_on(settings.where()):
        return str(field_of(TRAINER, "precision", both))


def loaded_in_bf16(said: Mapping[str, object]) -> bool:
    """Whether weights load in bf16, in which they multiply unless something casts them."""
    return field_of(TRAINER, "weight_precision", said) is not None


def sequence_length(said: StackSettings) -> int | None:
    """Tokens of a sequence; ``None`` where no argument says it."""
    return next((said.count(key) for key in SEQUENCE_NAMES if key in said), None)


_MODEL = TRAINER.model.name.keys if TRAINER.model.name else ()
_FILLED = {
    MICRO_BATCH: TRAINER_MICRO_BATCH,
    ACCUMULATION: TRAINER_ACCUMULATION,
    "bf16.enabled": "bf16",
    "fp16.enabled": "fp16",
    SEQUENCE: "sequence_parallel_size",
    TENSOR: "deepspeed_autotp_size",
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
    unsaid: Collection[str] = (),
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
    plan, notes, recorded, known = found.plan, found.notes, found.hyperparameters, found.workload
    if plan is not None and (RECOMPUTE in arguments or KEEP in arguments):
        keeps = arguments.flag(KEEP) if KEEP in arguments else not arguments.flag(RECOMPUTE)
        plan = plan.model_copy(update={"remat": Remat.NONE if keeps else Remat.FULL})
        notes = tuple(note for note in notes if note != RECOMPUTATION_UNKNOWN)
    said = {"sequence_length": sequence_length(arguments)} | of_program(arguments)
    if arguments.flag("fp8") or (known.precision == "fp32" and loaded_in_bf16(arguments)):
        said["precision"] = "fp8" if arguments.flag("fp8") else "bf16"
    if TRAINER_MICRO_BATCH in arguments:
        recorded = _recorded(recorded, configuration, arguments, of_yaml)
    if known.optimizer is not None or TRAINER_MICRO_BATCH not in arguments:
        said.pop("optimizer")
    workload = known.model_copy(update={key: value for key, value in said.items() if value is not None})
    notes = (*note_on_attention(arguments), *in_words_of_program(notes))
    return found.model_copy(update={"plan": plan, "notes": notes, "hyperparameters": recorded, "workload": workload})


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


def _fillings(configuration: Mapping[str, Any], arguments: StackSettings, unsaid: Collection[str]) -> dict[str, Any]:
    """What arguments fill; gradients of one microbatch, the Trainer's default, where none says accumulation."""
    once = TRAINER_MICRO_BATCH in arguments and TRAINER_ACCUMULATION not in (*arguments, *unsaid)
    default = {ACCUMULATION: 1} if once and configuration.get(ACCUMULATION) == AUTO else {}
    filled = default | {key: arguments[name] for key, name in _FILLED.items() if name in arguments}
    return filled | {key: "auto" for key, name in _FILLED.items() if name in unsaid and key not in filled}


def with_model(arguments: StackSettings, experiment: Experiment) -> Experiment:
    """``experiment`` with the model that the arguments name, where none is said."""
    name = next((arguments.text(key) for key in _MODEL if key in arguments), None)
    if name is None or experiment.model is not None:
        return experiment
    model, notes = read_named_model(name)
    return experiment.knowing(*notes, model=model)


_OF_TRAINER, _OF_TRL = ({*abstract(folder).files.own} for folder in ("trainer", "trl"))
"""Arguments that programs without the Trainer do not have, and those of ``SFTConfig``, which recomputes unless told
otherwise in some versions and not in others."""
_SAYS_RECOMPUTATION = re.compile(r"checkpointing$|grad\w{0,40}_(?:checkpoint|ckpt)|recompute")


def defaults_under(arguments: Mapping[str, Any], program: str) -> Mapping[str, Any]:
    """No recomputation, where a command has arguments of the Trainer and none that says it.

    Args:
        arguments: by name, also those whose value only a run can tell.
        program: that takes them.
    """
    said = {*arguments}
    of_trainer = TRAINER_MICRO_BATCH in said and not said.isdisjoint(_OF_TRAINER)
    if not of_trainer or not said.isdisjoint(_OF_TRL) or "sft" in program.rpartition("/")[2].casefold():
        return {}
    return {} if any(_SAYS_RECOMPUTATION.search(key) for key in said) else {RECOMPUTE: False}
