"""Shapes of the decoder, in numbers."""

from dataclasses import dataclass

from asap.prediction.step_model.inputs.number import Number


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """Shapes of the decoder. Widths are in elements."""

    layers: Number
    """Decoder layers, with those of multi-token prediction."""
    moe_layers: Number
    """Layers whose MLP is a mixture of experts."""
    width: Number
    """Width of the residual stream (d_model)."""
    vocab: Number
    """Entries of the vocabulary."""
    heads: Number
    """Query heads."""
    kv_heads: Number
    """Heads of keys and values."""
    qkv_width: Number
    """Width of queries, keys and values together."""
    out_width: Number
    """Width of what attention hands to its output projection."""
    key_value_width: Number
    """Width of keys and values together."""
    attention_parameters: Number
    """Parameters of the attention of one layer."""
    score_width: Number
    """Width of queries and values over all heads: two FLOPs per element for each pair of query and key."""
    up_projections: Number
    """Matrices into the MLP: 2 with a gate, else 1."""
    sequential_blocks: Number
    """What a layer adds to its residual stream one after the other: attention, then MLP (2), or both at once (1)."""
    mlp_width: Number
    """Hidden width of a dense MLP (d_ff)."""
    experts: Number
    """Routed experts of an MoE layer; 0 in a dense model."""
    experts_per_token: Number
    """Routed experts that a token visits."""
    expert_mlp_width: Number
    """Hidden width of one expert."""
    shared_mlp_width: Number
    """Hidden width of all shared experts together."""
    losses: Number
    """Times that logits and their loss are computed: once, and for each layer of multi-token prediction."""
    tied_embeddings: Number
    """Switch: the embedding is the output matrix as well."""
    window: Number
    """Keys that a query of a local layer can see."""
    local_layers: Number
    """Layers with sliding-window attention."""

    @property
    def moe_share(self) -> Number:
        """Share of the layers that are MoE."""
        return self.moe_layers / self.layers
