"""What runs in one kernel, and in which precision: attention, the loss, what PyTorch compiles, matrix products."""

import re
from collections.abc import Mapping

from asap.levers.lever import Run, Trial

_LARGEST_BLOCK = {"v5p": 2048, "v6e": 2048, "tpu7x": 2048}
"""Chip → tokens of a block in published recipes."""
_WITH_BLOCKS = (None, "autoselected", "flash")


def _larger_blocks(run: Run) -> Mapping[str, str]:
    block = min(_LARGEST_BLOCK.get(run.chip, 0), run.workload.sequence_length or 0)
    usual = run.words("attention_blocks")
    changed = any(str(run.settings.get(key, size)) != size for key, size in usual.items())
    if run.workload.attention not in _WITH_BLOCKS or changed:
        return {}
    return {key: str(block) for key, size in usual.items() if block > int(size)}


ATTENTION_BLOCKS = Trial(
    name="attention_blocks",
    title="larger blocks of attention",
    changes="time: of attention alone; HBM: none; numerics: none but the order of sums",
    reason="recipes for this chip set 1024 to 2048 tokens where the stack's default is 512",
    source="https://github.com/AI-Hypercomputer/tpu-recipes",
    settings=_larger_blocks,
    at_most="remove:attention",
)


_NOT_FUSED = ("eager", "math", "torch", "fused softmax", "dot_product")
"""What records call attention whose scores go through HBM."""
_WITH_KERNELS = re.compile(r"(a|h|b|g[bh]|l|mi|rtx)\d")
"""Names of GPUs from the A100 on: FlashAttention-2 has kernels for no earlier ones."""
_TPU = re.compile(r"v\d[ep]?$|tpu")


def _has_kernels(chip: str) -> bool:
    """Whether Triton and FlashAttention-2 have kernels for a chip."""
    return _WITH_KERNELS.match(chip) is not None


def _fused_attention(run: Run) -> Mapping[str, str]:
    if run.workload.attention not in _NOT_FUSED:
        return {}
    if _TPU.match(run.chip):
        return run.words("fused_attention_of_tpu")
    return run.words("fused_attention") if _has_kernels(run.chip) else {}


FUSED_ATTENTION = Trial(
    name="fused_attention",
    title="a fused attention kernel",
    changes="time: of attention; HBM: no scores of queries against keys; numerics: the order of sums",
    reason="attention scores go to HBM and back as it runs; a fused kernel keeps them on the chip",
    source="https://arxiv.org/abs/2205.14135",
    settings=_fused_attention,
    workload={"attention": "flash"},
    at_most="remove:compute",
)


_MODELS = re.compile(
    r"llama|mi[sx]tral|ministral|gemma|qwen|phi-?3|olmo-?[23]|smollm3|glm-?4|gpt-?oss|nemotron|exaone-?4", re.IGNORECASE
)
"""Families for which Liger replaces the loss (``transformers/monkey_patch.py``)."""


def _fused_loss(run: Run) -> Mapping[str, str]:
    work = run.workload
    done = work.fused_linear_cross_entropy or work.loss_chunks or work.compiled_loss
    known = run.model is not None and _MODELS.search(run.model.name or "")
    return {} if done or not known or not _has_kernels(run.chip) else run.words("fused_loss")


FUSED_LOSS = Trial(
    name="fused_loss",
    title="fused linear cross-entropy",
    changes="time: little; HBM: logits and their gradients, of which a part exists at a time; numerics: order of sums",
    reason="logits of all tokens and their gradients are in HBM at once; a fused kernel takes them part by part",
    source="https://arxiv.org/abs/2410.10989",
    settings=_fused_loss,
    workload={"fused_linear_cross_entropy": True},
    at_most="remove:compute",
)


def _compiled(run: Run) -> Mapping[str, str]:
    return run.words("torch_compile") if run.workload.compiled is False else {}


TORCH_COMPILE = Trial(
    name="torch_compile",
    title="compiling the model (torch.compile)",
    changes="time: of elementwise operations; HBM: fewer of their tensors; numerics: none but the order of sums",
    reason="four decoders took 10 to 34 % less time with it",
    source="https://github.com/Lightning-AI/litgpt/blob/3cf6493c/extensions/thunder/README.md,"
    " https://github.com/pytorch/torchtune/blob/bd2a0fc7c/README.md,"
    " https://github.com/daddyofadoggy/blog/blob/db07f84/posts/torchtitan/3d.md, docs/optimize.md",
    settings=_compiled,
    workload={"compiled": True, "compiled_loss": True},
)


_SLOW = ("fp32", "tf32")
_WITHOUT_BF16 = ("v100", "t4")
"""Prefixes of GPUs whose matrix units take fp16 alone."""


def _in_16_bits(run: Run) -> Mapping[str, str]:
    if run.workload.precision not in _SLOW or run.chip.startswith(_WITHOUT_BF16):
        return {}
    return run.words("mixed_precision")


MIXED_PRECISION = Trial(
    name="mixed_precision",
    title="bf16 mixed precision",
    changes="time: of all matrix products; HBM: activations of half the size; numerics: 8 bits of mantissa in products",
    reason="it trains in fp32, at a fraction of the chip's rate; the optimizer keeps fp32 weights, but numerics change",
    source="https://arxiv.org/abs/1905.12322",
    settings=_in_16_bits,
    workload={"precision": "bf16"},
)
