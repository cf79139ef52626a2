"""The architecture, in numbers."""

from asap.models import Architecture
from asap.prediction.step_model.inputs import ModelInputs


def model_inputs(a: Architecture) -> ModelInputs:
    """Widths of the decoder; MLA by its own projections (arXiv:2405.04434, section 2.1)."""
    layers, width, heads = (a.layers or 0) + a.mtp_layers, a.d_model or 0, a.heads or 0
    if a.kv_lora_rank is not None:
        nope, rope, value = a.qk_nope_head_dim or 0, a.qk_rope_head_dim or 0, a.v_head_dim or 0
        query = nope + rope
        query_rank = a.q_lora_rank or 0
        into = width * query_rank + query_rank * heads * query if query_rank else width * heads * query
        latent = width * (a.kv_lora_rank + rope) + a.kv_lora_rank * heads * (nope + value)
        parameters = into + latent + heads * value * width
        qkv, key_value = heads * (query + nope + value), heads * (nope + rope + value)
    else:
        query = value = a.head_dim or 0
        key_value = 2 * (a.kv_heads or 0) * query
        qkv = heads * query + key_value
        parameters = width * (qkv + heads * value)
    every = a.global_layer_every
    local = 0.0 if a.sliding_window is None else layers * (1 - 1 / every if every else 1.0)
    return ModelInputs(
        layers=layers,
        moe_layers=a.moe_layers + (a.mtp_layers if a.is_moe else 0),
        width=width,
        vocab=a.vocab or 0,
        heads=heads,
        kv_heads=heads if a.kv_lora_rank is not None else a.kv_heads or heads,
        qkv_width=qkv,
        out_width=heads * value,
        key_value_width=key_value,
        attention_parameters=a.attention_parameters or parameters,
        score_width=heads * (query + value),
        up_projections=2 if a.gated_mlp else 1,
        sequential_blocks=1 if a.parallel_block else 2,
        mlp_width=a.d_ff or 0,
        experts=a.experts,
        experts_per_token=a.experts_per_token,
        expert_mlp_width=a.expert_d_ff or 0,
        shared_mlp_width=a.shared_experts * (a.expert_d_ff or 0),
        losses=1 + a.mtp_layers,
        tied_embeddings=float(a.tied_embeddings),
        window=a.sliding_window or 0,
        local_layers=local,
    )
