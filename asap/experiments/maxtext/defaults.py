"""What MaxText's base.yml says of the keys that ASAP reads, and every key that MaxText has."""

from functools import cache
from pathlib import Path
from typing import Any

DEFAULTS: dict[str, Any] = {
    "attention": "autoselected",
    "attention_type": "global",
    "base_emb_dim": 2048,
    "base_mlp_dim": 7168,
    "base_moe_mlp_dim": -1,
    "base_num_decoder_layers": 16,
    "base_num_kv_heads": 16,
    "base_num_query_heads": 16,
    "compile_topology_num_slices": -1,
    "capacity_factor": -1.0,
    "chunk_attn_window_size": 0,
    "context_parallel_strategy": "all_gather",
    "decoder_block": "llama2",
    "dtype": "bfloat16",
    "first_num_dense_layers": 0,
    "gdn_conv_kernel_dim": 4,
    "gdn_key_head_dim": 128,
    "gdn_num_key_heads": 16,
    "gdn_num_value_heads": 32,
    "gdn_value_head_dim": 128,
    "global_parameter_scale": 1,
    "grad_dtype": "float32",
    "gradient_accumulation_steps": 1,
    "head_dim": 128,
    "interleave_moe_layer_step": 1,
    "kv_lora_rank": 512,
    "logits_via_embedding": False,
    "max_target_length": 2048,
    "mlp_activations": ["silu", "linear"],
    "model_name": "default",
    "mu_dtype": "",
    "num_experts": 1,
    "num_experts_per_tok": 1,
    "num_vocab_tiling": 1,
    "opt_type": "adamw",
    "per_device_batch_size": 12.0,
    "q_lora_rank": 0,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "quantization": "",
    "remat_policy": "full",
    "scan_layers": True,
    "shared_experts": 0,
    "sliding_window_size": 0,
    "sparse_matmul": True,
    "trainable_position_size": -1,
    "v_head_dim": 128,
    "vocab_size": 32_000,
    "vocab_tiling_ag_once": False,
    "weight_dtype": "float32",
}
"""Defaults of MaxText's base.yml (commit e591f30c) for what ASAP reads; those of the mesh are in asap.plans."""

EARLIER = {"base_num_heads": ("base_num_query_heads", "base_num_kv_heads")}
"""Keys that MaxText had until the end of 2023, and those that say the same now."""
_KEYS = Path(__file__).parent / "maxtext_keys.txt"


@cache
def known_keys() -> frozenset[str]:
    """Keys that MaxText has or had since 2024."""
    lines = _KEYS.read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())
