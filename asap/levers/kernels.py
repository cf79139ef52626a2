"""What runs in one kernel, and in which precision: attention, the loss, what PyTorch compiles, matrix products."""

import re
from collections.abc import Mapping

from asap.levers.lever import Run, Trial
from asap.stacks.trainer.arguments import KEEP, SECTION, TRAINER_MICRO_BATCH
from asap.stacks.writing import is_of_primus

_BLOCKS = (
    "sa_block_q", "sa_block_kv", "sa_block_kv_compute", "sa_block_q_dkv", "sa_block_kv_dkv", "sa_block_kv_dkv_compute",
    "sa_block_q_dq", "sa_block_kv_dq",
)  # fmt: skip
_DEFAULT_BLOCK = 512
"""In MaxText's configs/base.yml."""
_LARGEST_BLOCK = {"v5p": 2048, "v6e": 2048, "tpu7x": 2048}
"""Chip → tokens of a block in published recipes."""
_WITH_BLOCKS = (None, "autoselected", "flash")


def _larger_blocks(run: Run) -> Mapping[str, str]:
    block = min(_LARGEST_BLOCK.get(run.chip, 0), run.workload.sequence_length or 0)
    said = [str(run.settings.get(key, _DEFAULT_BLOCK)) for key in _BLOCKS]
    changed = any(word != str(_DEFAULT_BLOCK) for word in said)
    if run.stack != "maxtext" or run.workload.attention not in _WITH_BLOCKS or changed:
        return {}
    return dict.fromkeys(_BLOCKS, str(block)) if block > _DEFAULT_BLOCK else {}


ATTENTION_BLOCKS = Trial(
    name="attention_blocks",
    title="larger blocks of attention",
    changes="time: of attention alone; HBM: none; numerics: none but the order of sums",
    reason="recipes for this chip set 1024 to 2048 tokens where MaxText's default is 512",
    source="https://github.com/AI-Hypercomputer/tpu-recipes",
    settings=_larger_blocks,
    at_most="remove:attention",
)


_NOT_FUSED = ("eager", "math", "torch", "fused softmax", "dot_product")
"""What records call attention whose scores go through HBM."""
_WITH_KERNELS = re.compile(r"(a|h|b|g[bh]|l|mi|rtx)\d")
"""Names of GPUs from the A100 on: FlashAttention-2 has kernels for no earlier ones."""
_TPU = re.compile(r"v\d[ep]?$|tpu")
_OF_TRANSFORMERS = {"attn_implementation": "flash_attention_2", "attn_impl": "flash_attn", "flash_attn": "fa2"}
"""Arguments of programs on Hugging Face's transformers, ms-swift and LLaMA-Factory, and what turns the kernel on."""


def _has_kernels(chip: str) -> bool:
    """Whether Triton and FlashAttention-2 have kernels for a chip."""
    return _WITH_KERNELS.match(chip) is not None


def _fused_attention(run: Run) -> Mapping[str, str]:
    """In the words that are on record: a program has no others for certain."""
    if run.workload.attention not in _NOT_FUSED:
        return {}
    if run.stack == "maxtext":
        return _attention_of_xla(run)
    if not _has_kernels(run.chip):
        return {}
    if run.stack in ("deepspeed", "accelerate", "axolotl"):
        named = {f"{before}{key}": value for key, value in _OF_TRANSFORMERS.items() for before in ("", f"{SECTION}.")}
        return {key: value for key, value in named.items() if key in run.settings}
    return run.words("fused_attention")


def _attention_of_xla(run: Run) -> Mapping[str, str]:
    if _TPU.match(run.chip):
        return {"attention": "flash"}
    return {"attention": "cudnn_flash_te"} if _has_kernels(run.chip) else {}


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
_PLUGINS = "plugins"
_TARGET = "loss_fn._target_"
_OF_AUTOMODEL = {
    _TARGET: "nemo_automodel.components.loss.linear_ce.FusedLinearCrossEntropy",
    "model.output_hidden_states": "true",
}
"""Its recipe takes the loss from the hidden states, which the model has to return (``recipes/llm/train_ft.py``)."""


def _fused_loss(run: Run) -> Mapping[str, str]:
    work = run.workload
    done = work.fused_linear_cross_entropy or work.loss_chunks or work.compiled_loss
    known = run.model is not None and _MODELS.search(run.model.name or "")
    if done or not known or not _has_kernels(run.chip):
        return {}
    if _TARGET in run.settings:
        return _OF_AUTOMODEL
    if run.stack in ("deepspeed", "accelerate"):
        return _loss_of_trainer(run.settings)
    return _loss_of_plugins(run.settings) if run.stack == "axolotl" else {}


def _loss_of_trainer(settings: Mapping[str, object]) -> Mapping[str, str]:
    """Beside the Trainer's other arguments; LLaMA-Factory has a word of its own."""
    sections = ("", f"{SECTION}.")
    places = [before for before in sections if f"{before}{TRAINER_MICRO_BATCH}" in settings]
    word = "enable_liger_kernel" if any(f"{before}{KEEP}" in settings for before in sections) else "use_liger_kernel"
    return {f"{places[0]}{word}": "true"} if places else {}


def _loss_of_plugins(settings: Mapping[str, object]) -> Mapping[str, str]:
    """With the plugin that reads it, unless the file has a list of others, which a line would replace."""
    if any(key.startswith(_PLUGINS) for key in settings):
        return {}
    return {_PLUGINS: "[axolotl.integrations.liger.LigerPlugin]", "liger_fused_linear_cross_entropy": "true"}


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


_ENABLE, _EARLIER = "compile.enable", "training.compile"
"""The latter until the autumn of 2025."""


def _compiled(run: Run) -> Mapping[str, str]:
    if run.stack != "torchtitan" or run.workload.compiled is not False or is_of_primus(run.settings):
        return {}
    if str(run.settings.get(_ENABLE)).lower() == "true":
        return {"compile.components": '["model", "loss"]'}
    return {_EARLIER if _EARLIER in run.settings else _ENABLE: "true"}


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
    if run.stack in ("deepspeed", "accelerate"):
        return _precision_of_trainer(run.settings)
    return run.words("mixed_precision")


def _precision_of_trainer(settings: Mapping[str, object]) -> Mapping[str, str]:
    """Beside the Trainer's other arguments, unless DeepSpeed's configuration decides it."""
    if "bf16.enabled" in settings:
        return {}
    return {f"{before}bf16": "true" for before in ("", f"{SECTION}.") if f"{before}{TRAINER_MICRO_BATCH}" in settings}


MIXED_PRECISION = Trial(
    name="mixed_precision",
    title="bf16 mixed precision",
    changes="time: of all matrix products; HBM: activations of half the size; numerics: 8 bits of mantissa in products",
    reason="it trains in fp32, at a fraction of the chip's rate; the optimizer keeps fp32 weights, but numerics change",
    source="https://arxiv.org/abs/1905.12322",
    settings=_in_16_bits,
    workload={"precision": "bf16"},
)
