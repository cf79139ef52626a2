"""What arguments of Hugging Face's Trainer say of a workload, beside Accelerate's or DeepSpeed's settings."""

from collections.abc import Mapping
from typing import Any

from asap.plans.degrees import degree
from asap.stacks.reading import field_of
from asap.stacks.registry import abstract
from asap.stacks.spec import word_keys
from asap.stacks.trainer.arguments import AUTO, SECTION, TRAINER_ACCUMULATION, TRAINER_MICRO_BATCH, is_run_by_yaml

Settings = Mapping[str, object]
TRAINER = abstract("trainer")
_LENGTHS = word_keys(TRAINER.workload["sequence_length"])
_FIELDS = ("optimizer", "attention", "fused_linear_cross_entropy", "compiled")


def arguments_of(settings: Settings) -> dict[str, object]:
    """The arguments among a run's settings: those of the section, or the top level of a YAML file."""
    beginning = f"{SECTION}."
    own = {key.removeprefix(beginning): value for key, value in settings.items() if key.startswith(beginning)}
    return own or (dict(settings) if is_run_by_yaml(settings) else {})


def fields_of(arguments: Settings) -> dict[str, Any]:
    """Fields of a workload that are neither precision nor sharding; the Trainer's loss where nothing else is said."""
    found = {field: field_of(TRAINER, field, arguments) for field in _FIELDS}
    if (length := next((key for key in _LENGTHS if key in arguments), None)) is not None:
        found["sequence_length"] = degree(arguments, length)
    return found | ({"compiled_loss": bool(found["compiled"])} if TRAINER_MICRO_BATCH in arguments else {})


def precision(arguments: Settings, settings: Settings) -> str | None:
    """Of matrix products: the program's own argument wins over Accelerate's ``mixed_precision``; ``None`` where the
    arguments are not known, or neither is said and the program, which is not the Trainer, decides it."""
    both = {**settings, **arguments}
    if (mixed := field_of(TRAINER, "precision", both)) != "no":
        return mixed
    if loaded_in_bf16(arguments):
        return "bf16"
    stated = "mixed_precision" in both or TRAINER_MICRO_BATCH in arguments
    return "fp32" if arguments and stated else None


def weight_precision(arguments: Settings, settings: Settings, sharded: bool) -> str | None:
    """``bf16`` where weights stay as they are loaded: FSDP turns them into fp32 under mixed precision
    (accelerate, ``accelerator.py`` and ``utils/fsdp_utils.py``)."""
    mixed = field_of(TRAINER, "precision", {**settings, **arguments}) != "no"
    return "bf16" if loaded_in_bf16(arguments) and not (sharded and mixed) else None


def loaded_in_bf16(arguments: Settings) -> bool:
    """Whether weights load in bf16, in which they multiply unless something casts them."""
    return field_of(TRAINER, "weight_precision", arguments) is not None


def asked_for_batch(settings: Settings, micro: str, accumulation: str) -> tuple[str, ...]:
    """What of the batch is left open, by the keys of its microbatch and of its accumulation, or as the arguments of the
    program call these."""
    by_program = arguments_of(settings) or "distributed_type" in settings
    names = {micro: TRAINER_MICRO_BATCH, accumulation: TRAINER_ACCUMULATION} if by_program else {}
    return tuple(names.get(key, key) for key in (micro, accumulation) if settings.get(key, AUTO) == AUTO)
