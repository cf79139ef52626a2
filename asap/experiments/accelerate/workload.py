"""What arguments of Hugging Face's programs say of the numerics of a step (transformers, ``TrainingArguments``)."""

import re
from typing import Any

from asap.core.text import plain
from asap.experiments.settings.optimizer_names import moments_of_bits, optimizer_family
from asap.experiments.settings.stack_settings import StackSettings
from asap.experiments.settings.transformers_arguments import (
    ATTENTION,
    FLASH,
    LIGER,
    LOADED_AS,
    attention_kernel,
    compiles_loss,
    has_fused_linear_cross_entropy,
    loaded_in_bf16,
)
from asap.stacks.deepspeed.trainer import TRAINER_MICRO_BATCH

_OPTIMIZER = ("optim", "optimizer", "optimizer_type", "customized_optim")
READ = frozenset(
    [
        "bf16",
        "fp16",
        "fp8",
        "mixed_precision",
        "optim",
        "packing",
        "torch_compile",
        *LIGER,
        *LOADED_AS,
        *ATTENTION,
        *FLASH,
    ]
)
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
    if mixed in ("bf16", "fp16", "fp8"):
        return mixed
    if loaded_in_bf16(said):
        return "bf16"
    told = "mixed_precision" in {*said, *settings} or TRAINER_MICRO_BATCH in said
    return "fp32" if said and told else None


def weight_precision(said: StackSettings, settings: StackSettings, sharded: bool) -> str | None:
    """``bf16`` where weights stay as they are loaded: FSDP turns them into fp32 under mixed precision
    (accelerate, ``accelerator.py`` and ``utils/fsdp_utils.py``)."""
    kept = loaded_in_bf16(said) and not (sharded and _mixed(said, settings) != "no")
    return "bf16" if kept else None


def of_program(said: StackSettings) -> dict[str, Any]:
    """Fields of a workload; ``None`` where it is not said."""
    named = next((said.text(key) for key in _OPTIMIZER if key in said), None)
    return {
        "optimizer": optimizer_family(named),
        "attention": attention_kernel(said),
        "fused_linear_cross_entropy": has_fused_linear_cross_entropy(said),
        "compiled_loss": compiles_loss(said),
        "compiled": True if said.flag("torch_compile") else None,
        **moments_of_bits(named),
    }


def notes_on(said: StackSettings) -> tuple[str, ...]:
    """What is modelled otherwise than it runs."""
    notes = []
    key = next((key for key in ("max_seq_length", "max_length", "model_max_length", "cutoff_len") if key in said), None)
    if key and not said.flag("packing"):
        notes.append(f"sequences are cut at {plain(said[key], 20)} tokens ({key}); all are taken as that long")
    own = [key for key in sorted(said) if _OF_PROGRAM.fullmatch(key) and _is_on(said, key)]
    own += [key for key in sorted(said) if _TRAINED.fullmatch(key) and str(said[key]).casefold() not in _OFF]
    if own:
        notes.append(
            f"not read, as only the program knows what it changes: {', '.join(f'--{plain(key, 40)}' for key in own)}"
        )
    return tuple(notes)


def _mixed(said: StackSettings, settings: StackSettings) -> str:
    own = next((kind for kind in ("bf16", "fp16") if said.flag(kind)), None)
    mixed = said.get("mixed_precision", settings.get("mixed_precision"))
    return "fp8" if _is_on(said, "fp8") else own or ("no" if mixed in (None, False) else str(mixed).casefold())


def _is_on(said: StackSettings, key: str) -> bool:
    return str(said.get(key)).casefold() in ("true", "1", "yes")
