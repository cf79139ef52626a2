"""What arguments of programs on Hugging Face's transformers say of attention, and of the type that weights load in."""

from collections.abc import Mapping

LOADED_AS = ("torch_dtype", "dtype", "model_dtype")
ATTENTION = ("attn_implementation", "attn_impl")
FLASH = ("use_flash_attention_2", "use_flash_attn", "use_flash_attention", "flash_attn")
_BF16 = ("bfloat16", "torch.bfloat16", "bf16")
_ON = ("true", "1", "yes")
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
