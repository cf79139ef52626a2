"""What arguments of Hugging Face's programs say of the numerics of a step (transformers, ``TrainingArguments``)."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.files.documents import parse_document
from asap.experiments.files.named_file import Brought, find_named, missing
from asap.experiments.settings.optimizer_names import (
    attention_kernel,
    compiles_loss,
    has_fused_linear_cross_entropy,
    loaded_in_bf16,
    moments_of_bits,
    optimizer_family,
)
from asap.stacks.accelerate.stack import FSDP, OPTION, WORDS, is_fsdp, of_option
from asap.stacks.registry import abstract
from asap.stacks.spec import word_keys
from asap.stacks.stack_settings import StackSettings
from asap.stacks.trainer.arguments import TRAINER_MICRO_BATCH

_OPTIMIZER = word_keys(abstract("trainer").workload["optimizer"])
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


_CONFIG, ACCELERATOR, _EACH = "fsdp_config", "accelerator_config", "sync_each_batch"
_WORD = re.compile(r"\w+", re.ASCII)
_ON, _OFF = ("true", "1"), ("", "false", "none", "0")
_PREFIX = "fsdp_"
_VARIABLE = "FSDP_SHARDING_STRATEGY"
"""Of the environment (accelerate, ``FullyShardedDataParallelPlugin``), which the Trainer leaves as it is where its
option names no strategy."""


def of_trainer(
    stated: Mapping[str, Any], path: Path, brought: Brought, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Accelerate's settings, by dotted key, that arguments of the Trainer stand for.

    Args:
        told: arguments by name.
        path: the file that says them.
        brought: files that come along with it.
        environment: variables of the run, which say a strategy that the option leaves out.

    Raises:
        ConfigError: the option has a word that the Trainer has not, or the file that is named is not there.
    """
    said = stated.get(OPTION)
    text = " ".join(map(str, said)) if isinstance(said, list) else str(said or "").casefold()
    words = [] if text in _OFF else [WORDS[0]] if text in _ON else _WORD.findall(text.casefold())
    if unknown := next((word for word in words if word not in (*WORDS, "offload", "auto_wrap")), None):
        known = ", ".join((*WORDS, "offload", "auto_wrap"))
        raise ConfigError(f"{OPTION} has no option {plain(unknown, 40)}", where=str(path), hint=f"known are {known}")
    settings = of_option(" ".join(words), _strategy_in(environment or {}))
    if not is_fsdp(settings) or stated.get(_CONFIG) is None:
        return settings
    own = _configuration(stated, _CONFIG, path, brought)
    return settings | {f"{FSDP}.{_PREFIX}{key.removeprefix(_PREFIX)}": value for key, value in own.items()}


def _strategy_in(environment: Mapping[str, str]) -> str:
    """What a variable says, by name or by its number from 1 on; all is sharded by default."""
    text = environment.get(_VARIABLE, "").casefold()
    number = int(text) - 1 if text.isascii() and text.isdecimal() and len(text) == 1 else 0
    return text if text in WORDS else WORDS[number] if 0 <= number < len(WORDS) else WORDS[0]


def syncs_each_batch(said: StackSettings, path: Path, brought: Brought) -> bool | None:
    """Whether gradients are scattered in every microbatch (``accelerator_config``); ``None`` where it is not said.

    Raises:
        ConfigError: it is no truth value, or the file that is named is not there.
    """
    if ACCELERATOR not in said:
        return None
    kwargs = _configuration(said, ACCELERATOR, path, brought).get("gradient_accumulation_kwargs")
    inner = StackSettings(kwargs if isinstance(kwargs, Mapping) else {}, str(path))
    return inner.flag(_EACH) if _EACH in inner else None


def _configuration(stated: Mapping[str, Any], key: str, path: Path, brought: Brought) -> Mapping[str, Any]:
    """A mapping of an argument: itself, as JSON, or in the file that it names."""
    said = stated[key]
    if isinstance(said, Mapping):
        return said
    text = str(said).strip()
    if text.startswith("{"):
        return parse_document(text, path / f"{key}.json").values
    found = find_named(text, path, brought)
    if found is None:
        raise missing(f"names the {key}", text, path, "lay it beside the file")
    return found.document().values
