"""Arguments of Hugging Face's Trainer beside DeepSpeed's configuration (transformers, ``integrations/deepspeed.py``).

The Trainer fills what the configuration leaves ``auto``, and refuses a number there that its own arguments contradict
(``HfTrainerDeepSpeedConfig.trainer_config_process``). A line to paste names them below ``TrainingArguments``; a YAML
file of arguments, as LLaMA-Factory's or Axolotl's, has them at its top level.
"""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.plan import Remat
from asap.plans.remat import Policy

AUTO = "auto"
SECTION = "TrainingArguments"
TRAINER_MICRO_BATCH, TRAINER_ACCUMULATION = "per_device_train_batch_size", "gradient_accumulation_steps"
RECOMPUTE = "gradient_checkpointing"
KEEP = "disable_gradient_checkpointing"
"""What LLaMA-Factory has instead (``src/llamafactory/model/model_utils/checkpointing.py``)."""
_OF_AXOLOTL = {
    TRAINER_MICRO_BATCH: "micro_batch_size",
    "tensor_parallel.autotp_size": "tensor_parallel_size",
    "sequence_parallel_size": "context_parallel_size",
}
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
