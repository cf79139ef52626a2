"""Optimizers as PyTorch's stacks name them: ``paged_adamw_8bit``."""

import re
from collections.abc import Mapping

from asap.core.text import plain
from asap.stacks.trainer.arguments import TRAINER_MICRO_BATCH

_FAMILY = re.compile(r"adamw|adafactor|adam|lion|muon|sgd")
_WITH_BITS = re.compile(r"adam\w{0,40}?_?(32|8|4)bit$")
_OF_BITS = {"32": "fp32", "8": "int8", "4": "fp4"}
_PAGED = "paged"
_KEY = re.compile(r"(?:^|\.)optim(?:izer)?(?:$|[._](?:name|type|_component_|class_path)$)")


def optimizer_family(name: str | None) -> str:
    """``paged_adamw_8bit`` → ``adamw``, which is the default; a name of no family stays."""
    said = (name or "adamw").casefold()
    found = _FAMILY.search(said)
    return found[0] if found else said


def moments_of_bits(name: str | None) -> dict[str, str]:
    """The precision of Adam's moments as fields of a workload, where the name says one, whatever weights have.

    Wide moments that are paged are left open: how much of them HBM holds, only a run can tell.
    """
    said = (name or "").casefold().replace("_bnb_", "_")
    found = _WITH_BITS.search(said)
    kept = _OF_BITS[found[1]] if found and not (found[1] == "32" and _PAGED in said) else None
    return {"first_moment_precision": kept, "second_moment_precision": kept} if kept else {}


def note_on_paged(settings: Mapping[str, object]) -> tuple[str, ...]:
    """A note that an optimizer moves its state to the host where HBM is full; none where none does."""
    named = [value for key, value in settings.items() if isinstance(value, str) and _KEY.search(str(key))]
    paged = next((name for name in named if _PAGED in name.casefold()), None)
    said = "what HBM has no room for of its state waits in host memory, which is not modelled"
    return (f"optimizer {plain(paged, 60)}: {said}",) if paged else ()


LOADED_AS = ("torch_dtype", "dtype", "model_dtype")
ATTENTION = ("attn_implementation", "attn_impl")
FLASH = ("use_flash_attention_2", "use_flash_attn", "use_flash_attention", "flash_attn")
LIGER = ("use_liger_kernel", "enable_liger_kernel")
"""Of the Trainer, and of LLaMA-Factory."""
_OF_LIGER, _FUSED_LINEAR = "liger_kernel_config", "fused_linear_cross_entropy"
_BF16 = ("bfloat16", "torch.bfloat16", "bf16")
_ON = ("true", "1", "yes")
_OFF = ("false", "0", "no")
_OF_LLAMA_FACTORY = {"disabled": "eager", "sdpa": "sdpa", "fa2": "flash", "fa3": "flash_attention_3"}
"""Values of its ``flash_attn``; ``auto`` is the library's choice (``hparams/model_args.py``)."""


def attention_kernel(said: Mapping[str, object]) -> str | None:
    """The kernel of attention; ``None`` where the library chooses one."""
    kernel = next((str(said[key]) for key in ATTENTION if said.get(key)), None)
    if "flash" in (kernel or "") or any(str(said.get(key)).casefold() in _ON for key in FLASH):
        return "flash"
    return kernel or _OF_LLAMA_FACTORY.get(str(said.get("flash_attn")).casefold())


def loaded_in_bf16(said: Mapping[str, object]) -> bool:
    """Whether weights load in bf16, in which they multiply unless something casts them."""
    return any(str(said.get(key)).casefold() in _BF16 for key in LOADED_AS)


def compiles_loss(said: Mapping[str, object]) -> bool | None:
    """Whether the Trainer compiles the model, which takes the loss; ``None`` for other programs."""
    return str(said.get("torch_compile")).casefold() in _ON if TRAINER_MICRO_BATCH in said else None


def has_fused_linear_cross_entropy(said: Mapping[str, object]) -> bool | None:
    """Whether Liger's kernel takes the output projection and the loss, as it does where nothing turns that off;
    ``None`` where Liger is not used."""
    if not any(str(said.get(key)).casefold() in _ON for key in LIGER):
        return None
    own = said.get(_OF_LIGER)
    kernel = own.get(_FUSED_LINEAR) if isinstance(own, Mapping) else said.get(f"{_OF_LIGER}.{_FUSED_LINEAR}")
    return str(kernel).casefold() not in _OFF
