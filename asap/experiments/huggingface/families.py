"""Hugging Face model types that are read, and what their files leave unsaid.

A ``config.json`` omits what equals the default of its class in the transformers library
(``models/*/configuration_*.py``); the defaults that matter are here.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Family:
    """Defaults of a ``model_type``.

    Args:
        gated: an MLP of three matrices.
        tied: input and output embeddings are one matrix, unless ``tie_word_embeddings`` says otherwise.
        parallel: attention and MLP both read the input of their layer, unless ``use_parallel_residual`` says otherwise.
        qk_norm: a norm of each head's queries and keys.
        full_attention_every: with a window, one full-attention layer in so many.
        windowed: whether ``sliding_window`` counts without ``use_sliding_window``.
        defaults: counts by the name of their field in an Architecture.
        names: keys of fields that this family calls otherwise than :data:`NAMES`.
        parallel_key: the key that says whether a layer is parallel.
        dense_multiple: width of a dense MLP by default, in widths of the model.
    """

    gated: bool = True
    tied: bool = False
    parallel: bool = False
    qk_norm: bool = False
    full_attention_every: int | None = None
    windowed: bool = True
    defaults: dict[str, int] = field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parallel_key: str = "use_parallel_residual"
    dense_multiple: int | None = None


FAMILIES: dict[str, Family] = {
    "cohere": Family(tied=True, parallel=True),
    "deepseek_v2": Family(),
    "deepseek_v3": Family(),
    "falcon": Family(
        gated=False,
        tied=True,
        parallel=True,
        names={"kv_heads": ("num_kv_heads", "n_head_kv"), "d_ff": ("ffn_hidden_size",)},
        parallel_key="parallel_attn",
        dense_multiple=4,
    ),
    "gemma": Family(tied=True),
    "gemma2": Family(tied=True, full_attention_every=2),
    "gemma3_text": Family(
        tied=True,
        qk_norm=True,
        full_attention_every=6,
        defaults={"heads": 8, "kv_heads": 4, "head_dim": 256, "vocab": 262_208, "sliding_window": 4096},
    ),
    "gpt2": Family(gated=False, tied=True, defaults={"learned_positions": 1024}, dense_multiple=4),
    "gpt_neox": Family(gated=False, parallel=True),
    "gpt_oss": Family(full_attention_every=2),
    "granite": Family(),
    "kimi_k2": Family(),
    "llama": Family(),
    "llama4_text": Family(
        full_attention_every=4,
        names={
            "d_ff": ("intermediate_size_mlp",),
            "expert_d_ff": ("intermediate_size",),
            "moe_every": ("interleave_moe_layer_step",),
            "sliding_window": ("attention_chunk_size",),
        },
        defaults={
            "layers": 48,
            "d_model": 5120,
            "d_ff": 16_384,
            "heads": 40,
            "kv_heads": 8,
            "head_dim": 128,
            "vocab": 202_048,
            "experts": 16,
            "experts_per_token": 1,
            "expert_d_ff": 8192,
            "shared_experts": 1,
            "moe_every": 1,
            "sliding_window": 8192,
        },
    ),
    "mistral": Family(),
    "mixtral": Family(),
    "olmo": Family(),
    "olmo2": Family(),
    "olmo3": Family(full_attention_every=4),
    "olmoe": Family(),
    "phi3": Family(),
    "qwen2": Family(windowed=False),
    "qwen2_moe": Family(windowed=False),
    "qwen3": Family(windowed=False, qk_norm=True),
    "qwen3_moe": Family(windowed=False, qk_norm=True),
    "starcoder2": Family(gated=False, tied=True),
}

OTHER_NAMES = {"RefinedWeb": "falcon", "RefinedWebModel": "falcon", "llama4": "llama4_text"}
"""Model types that are another family under an earlier or an outer name."""

NAMES: dict[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer"),
    "d_model": ("hidden_size", "n_embd"),
    "d_ff": ("intermediate_size", "n_inner"),
    "heads": ("num_attention_heads", "n_head"),
    "kv_heads": ("num_key_value_heads",),
    "head_dim": ("head_dim",),
    "vocab": ("vocab_size",),
    "learned_positions": ("n_positions",),
    "experts": ("n_routed_experts", "num_local_experts", "num_experts"),
    "experts_per_token": ("num_experts_per_tok", "experts_per_token"),
    "expert_d_ff": ("moe_intermediate_size",),
    "shared_experts": ("n_shared_experts",),
    "leading_dense_layers": ("first_k_dense_replace",),
    "moe_every": ("decoder_sparse_step", "moe_layer_freq"),
    "sliding_window": ("sliding_window",),
    "q_lora_rank": ("q_lora_rank",),
    "kv_lora_rank": ("kv_lora_rank",),
    "qk_nope_head_dim": ("qk_nope_head_dim",),
    "qk_rope_head_dim": ("qk_rope_head_dim",),
    "v_head_dim": ("v_head_dim",),
}
"""Field of an Architecture → names of its key."""

EXPERT_FIELDS = (
    "experts",
    "experts_per_token",
    "expert_d_ff",
    "shared_experts",
    "leading_dense_layers",
    "moe_every",
)
