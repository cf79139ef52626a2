"""Attention in one kernel, where what runs writes its scores to HBM."""

import re
from collections.abc import Mapping

from asap.levers.lever import Run, Trial
from asap.stacks.trainer.arguments import SECTION

_NOT_FUSED = ("eager", "math", "torch", "fused softmax", "dot_product")
"""What records call attention whose scores go through HBM."""
_HAS_KERNELS = re.compile(r"(a|h|b|g[bh]|l|mi|rtx)\d")
"""Names of GPUs from the A100 on: FlashAttention-2 has kernels for no earlier ones."""
_TPU = re.compile(r"v\d[ep]?$|tpu")
_OF_TRANSFORMERS = {"attn_implementation": "flash_attention_2", "attn_impl": "flash_attn", "flash_attn": "fa2"}
"""Arguments of programs on Hugging Face's transformers, ms-swift and LLaMA-Factory, and what turns the kernel on."""

_OF_MEGATRON: Mapping[str, Mapping[str, str]] = {
    "Megatron-Core": {"attention-backend": "fused"},
    "Megatron-LM": {"use-flash-attn": "true"},
    "Megatron-DeepSpeed": {"use-flash-attn-v2": "true"},
}
"""Where Transformer Engine attends, where Megatron's own module does, and in its fork."""


def has_kernels(chip: str) -> bool:
    """Whether Triton and FlashAttention-2 have kernels for a chip."""
    return _HAS_KERNELS.match(chip) is not None


def _settings(run: Run) -> Mapping[str, str]:
    """In the words that are on record: a program has no others for certain."""
    if run.workload.attention not in _NOT_FUSED:
        return {}
    if run.stack == "maxtext":
        return _of_maxtext(run)
    if not has_kernels(run.chip):
        return {}
    if run.stack == "megatron":
        return _OF_MEGATRON.get(run.workload.framework or "", {})
    if run.stack in ("deepspeed", "accelerate", "axolotl"):
        named = {f"{before}{key}": value for key, value in _OF_TRANSFORMERS.items() for before in ("", f"{SECTION}.")}
        return {key: value for key, value in named.items() if key in run.settings}
    return {}


def _of_maxtext(run: Run) -> Mapping[str, str]:
    if _TPU.match(run.chip):
        return {"attention": "flash"}
    return {"attention": "cudnn_flash_te"} if has_kernels(run.chip) else {}


TRIAL = Trial(
    name="fused_attention",
    title="a fused attention kernel",
    changes="time: of attention; HBM: no scores of queries against keys; numerics: the order of sums",
    reason="attention scores go to HBM and back as it runs; a fused kernel keeps them on the chip",
    source="https://arxiv.org/abs/2205.14135",
    settings=_settings,
    workload={"attention": "flash"},
    at_most="remove:compute",
)
