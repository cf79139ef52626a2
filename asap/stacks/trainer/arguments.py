"""Arguments of Hugging Face's Trainer beside DeepSpeed's or Accelerate's settings, and what they say of a workload
(transformers, ``integrations/deepspeed.py``).

The Trainer fills what DeepSpeed's configuration leaves ``auto``, and refuses a number there that its own arguments
contradict (``HfTrainerDeepSpeedConfig.trainer_config_process``). A line to paste names them below
``TrainingArguments``; a YAML file of arguments, as LLaMA-Factory's or Axolotl's, has them at its top level.
"""

from collections.abc import Mapping
from typing import Any

from asap.core.errors import PlanError
from asap.plans.degrees import degree
from asap.plans.plan import Remat
from asap.plans.remat import Policy
from asap.stacks.reading import field_of
from asap.stacks.registry import spec
from asap.stacks.words import word_keys

AUTO = "auto"
SECTION = "TrainingArguments"
TRAINER_MICRO_BATCH, TRAINER_ACCUMULATION = "per_device_train_batch_size", "gradient_accumulation_steps"
RECOMPUTE = "gradient_checkpointing"
KEEP = "disable_gradient_checkpointing"
"""What LLaMA-Factory has instead (``src/llamafactory/model/model_utils/checkpointing.py``)."""
_OF_AXOLOTL = {theirs: own for own, theirs in spec("axolotl").renamed.items()}
"""What Axolotl calls otherwise, whose YAML fills DeepSpeed's configuration."""
_OFFLOAD = "activation_offloading"
"""Axolotl's, which goes with recomputation alone."""
OF_YAML = frozenset((TRAINER_MICRO_BATCH, TRAINER_ACCUMULATION, RECOMPUTE, KEEP, _OFFLOAD, *_OF_AXOLOTL.values()))
"""What a YAML file of arguments says, and DeepSpeed's configuration does not."""


def in_words_of_axolotl(settings: Mapping[str, object], key: str) -> str:
    """A key as Axolotl has it, where it runs these settings."""
    return _OF_AXOLOTL.get(key, key) if "base_model" in settings else key


def argument_key(settings: Mapping[str, object], name: str) -> str:
    """Where an argument stands among a run's settings: at the top level of a YAML file, else in the section."""
    if "base_model" in settings:
        return in_words_of_axolotl(settings, name)
    return name if is_run_by_yaml(settings) else f"{SECTION}.{name}"


def is_run_by_yaml(settings: Mapping[str, object]) -> bool:
    """Whether the arguments of a run are the top level of a YAML file, which names DeepSpeed's configuration."""
    return "base_model" in settings or TRAINER_MICRO_BATCH in settings


def is_run_by_trainer(settings: Mapping[str, object]) -> bool:
    """Whether transformers or accelerate start it: their arguments are on record, or something is left ``auto``.

    They load weights under ``deepspeed.zero.Init``, where MiCS asserts that its own ``MiCS_Init`` did
    (``deepspeed/runtime/zero/mics.py``, ``MiCS_Optimizer``; huggingface/accelerate issue 3442).
    """
    return argument_key(settings, TRAINER_MICRO_BATCH) in settings or AUTO in settings.values()


def recomputation_key(settings: Mapping[str, object]) -> str | None:
    """The argument on record that decides what is recomputed; ``None``: the model's code does."""
    known = (argument_key(settings, KEEP), argument_key(settings, RECOMPUTE))
    return next((key for key in known if key in settings), None)


def recomputation(remat: Policy | None, settings: Mapping[str, object]) -> dict[str, object]:
    """Recomputation as an argument; nothing where none is on record.

    Raises:
        PlanError: the Trainer has no such recomputation.
    """
    key = recomputation_key(settings)
    if remat is None or key is None:
        return {}
    if remat not in (Remat.NONE, Remat.FULL):
        raise PlanError(f"Hugging Face's Trainer has no recomputation like remat={remat.value}", hint="full or none")
    offloads = remat is Remat.NONE and str(settings.get(_OFFLOAD)).casefold() == "true"
    return {key: (remat is Remat.FULL) != key.endswith(KEEP), **({_OFFLOAD: False} if offloads else {})}


Settings = Mapping[str, object]
TRAINER = spec("trainer")
_LENGTHS = word_keys(*TRAINER.workload["sequence_length"])
_FIELDS = (
    "optimizer", "attention", "fused_linear_cross_entropy", "compiled", "adapter_rank", "adapted", "frozen_precision",
)  # fmt: skip


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


def weights(arguments: Settings, settings: Settings) -> dict[str, object]:
    """Their precision as they are loaded; FSDP turns them into fp32 under mixed precision (accelerate,
    ``accelerator.py`` and ``utils/fsdp_utils.py``)."""
    if not loaded_in_bf16(arguments):
        return {}
    mixed = field_of(TRAINER, "precision", {**settings, **arguments}) != "no"
    return {"weight_precision": "bf16", "fsdp_upcasts": mixed or None}


def loaded_in_bf16(arguments: Settings) -> bool:
    """Whether weights load in bf16, in which they multiply unless something casts them."""
    return field_of(TRAINER, "weight_precision", arguments) is not None


def asked_for_batch(settings: Settings, micro: str, accumulation: str) -> tuple[str, ...]:
    """What of the batch is left open, by the keys of its microbatch and of its accumulation, or as the arguments of the
    program call these."""
    by_program = arguments_of(settings) or "distributed_type" in settings
    names = {micro: TRAINER_MICRO_BATCH, accumulation: TRAINER_ACCUMULATION} if by_program else {}
    return tuple(names.get(key, key) for key in (micro, accumulation) if settings.get(key, AUTO) == AUTO)
