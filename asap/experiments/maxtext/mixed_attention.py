"""Parameters of attention where the layers of a decoder have different attention, on average over them.

Gemma 4 has other heads in its global layers (MaxText's models/gemma4.py); Qwen3-Next and Qwen3.5 have linear attention
in three of four layers and a gated output in the fourth (models/qwen3.py, arXiv:2412.06464).
"""

from asap.experiments.maxtext.settings import MaxTextSettings
from asap.models.parameters import linear_attention_parameters

_GLOBAL_EVERY = {"gemma4": 6, "qwen3_next": 4, "qwen3_5": 4}


def mean_attention_parameters(settings: MaxTextSettings) -> int | None:
    """Parameters of attention in a layer, averaged over local and global ones; ``None`` where all are alike."""
    block = settings.text("decoder_block") or ""
    every = _GLOBAL_EVERY.get(block)
    layers = settings.positive("base_num_decoder_layers")
    if every is None or layers is None:
        return None
    local, full = (_gemma4 if block == "gemma4" else _linear)(settings)
    return round((local * (layers - layers // every) + full * (layers // every)) / layers)


def _gemma4(settings: MaxTextSettings) -> tuple[int, int]:
    width, heads = settings.positive("base_emb_dim") or 0, settings.positive("base_num_query_heads") or 0
    kv_heads, dim = settings.positive("base_num_kv_heads") or 0, settings.positive("head_dim") or 0
    global_kv = settings.positive("global_num_kv_heads") or kv_heads
    global_dim = settings.positive("global_head_dim") or dim
    shared = 1 if settings.flag("share_kv_projections") else 2
    return width * dim * (2 * heads + 2 * kv_heads), width * global_dim * (2 * heads + shared * global_kv)


def _linear(settings: MaxTextSettings) -> tuple[int, int]:
    width, heads = settings.positive("base_emb_dim") or 0, settings.positive("base_num_query_heads") or 0
    kv_heads, dim = settings.positive("base_num_kv_heads") or 0, settings.positive("head_dim") or 0
    key_heads, value_heads = settings.positive("gdn_num_key_heads") or 0, settings.positive("gdn_num_value_heads") or 0
    linear = linear_attention_parameters(
        width, key_heads, settings.positive("gdn_key_head_dim") or 0, value_heads,
        settings.positive("gdn_value_head_dim") or 0, settings.positive("gdn_conv_kernel_dim") or 0,
    )  # fmt: skip
    return linear, width * dim * (3 * heads + 2 * kv_heads)
