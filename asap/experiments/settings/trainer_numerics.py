"""What arguments of Hugging Face's programs say of the numerics of a step (transformers, ``TrainingArguments``)."""

import re
from collections.abc import Mapping
from typing import Any

from asap.core.text import plain
from asap.experiments.settings.remarks import moments_of_bits, note_on_unmodelled, optimizer_family
from asap.stacks.reading import field_of
from asap.stacks.registry import abstract
from asap.stacks.spec import word_keys
from asap.stacks.stack_settings import StackSettings
from asap.stacks.trainer.arguments import TRAINER_MICRO_BATCH

TRAINER = abstract("trainer")
ATTENTION = tuple(dict.fromkeys(word_keys(TRAINER.workload["attention"])))
SEQUENCE_NAMES = word_keys(TRAINER.workload["sequence_length"])
_LOADED_AS, _BF16 = ("torch_dtype", "dtype", "model_dtype"), ("bfloat16", "torch.bfloat16", "bf16")
_LIGER = ("use_liger_kernel", "enable_liger_kernel")
"""Of the Trainer, and of LLaMA-Factory."""
_OF_LIGER, _FUSED_LINEAR = "liger_kernel_config", "fused_linear_cross_entropy"
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
    stated = "mixed_precision" in {*said, *settings} or TRAINER_MICRO_BATCH in said
    return "fp32" if said and stated else None


def weight_precision(said: StackSettings, settings: StackSettings, sharded: bool) -> str | None:
    """``bf16`` where weights stay as they are loaded: FSDP turns them into fp32 under mixed precision
    (accelerate, ``accelerator.py`` and ``utils/fsdp_utils.py``)."""
    kept = loaded_in_bf16(said) and not (sharded and _mixed(said, settings) != "no")
    return "bf16" if kept else None


def of_program(said: StackSettings) -> dict[str, Any]:
    """Fields of a workload, those that are said; the Trainer's optimizer and its loss where nothing else is."""
    named = field_of(TRAINER, "optimizer", said)
    found = {
        "optimizer": optimizer_family(named),
        "attention": field_of(TRAINER, "attention", said),
        "fused_linear_cross_entropy": _has_fused_linear_cross_entropy(said),
        "compiled_loss": _is_on(said, "torch_compile") if TRAINER_MICRO_BATCH in said else None,
        "compiled": True if said.flag("torch_compile") else None,
        **moments_of_bits(named),
    }
    return {field: value for field, value in found.items() if value is not None}


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
    return (*notes, *note_on_unmodelled(said, TRAINER.unmodelled))


def _mixed(said: StackSettings, settings: StackSettings) -> str:
    own = next((kind for kind in ("bf16", "fp16") if said.flag(kind)), None)
    mixed = said.get("mixed_precision", settings.get("mixed_precision"))
    return "fp8" if _is_on(said, "fp8") else own or ("no" if mixed in (None, False) else str(mixed).casefold())


def _is_on(said: StackSettings, key: str) -> bool:
    return str(said.get(key)).casefold() in ("true", "1", "yes")


def loaded_in_bf16(said: Mapping[str, object]) -> bool:
    """Whether weights load in bf16, in which they multiply unless something casts them."""
    return any(str(said.get(key)).casefold() in _BF16 for key in _LOADED_AS)


def sequence_length(said: StackSettings) -> int | None:
    """Tokens of a sequence; ``None`` where no argument says it."""
    return next((said.count(key) for key in SEQUENCE_NAMES if key in said), None)


def _has_fused_linear_cross_entropy(said: StackSettings) -> bool | None:
    """Whether Liger's kernel takes the output projection and the loss, as it does where nothing turns that off;
    ``None`` where Liger is not used."""
    if not any(_is_on(said, key) for key in _LIGER):
        return None
    own = said.get(_OF_LIGER)
    kernel = own.get(_FUSED_LINEAR) if isinstance(own, Mapping) else said.get(f"{_OF_LIGER}.{_FUSED_LINEAR}")
    return str(kernel).casefold() not in ("false", "0", "no")
