"""What arguments of programs on Hugging Face's transformers say of attention, of the loss, and of the type that weights
load in."""

from collections.abc import Mapping

from asap.stacks.deepspeed.trainer import TRAINER_MICRO_BATCH

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
