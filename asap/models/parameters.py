"""How many parameters a decoder has, part by part.

Counts follow "How to Scale Your Model", chapter "All the Transformer Math You Need to Know" (dense, GQA, gated,
mixture of experts), and DeepSeek-V2, section 2.1 and appendix C (latent attention, arXiv:2405.04434). Biases and
the few norms beyond two a layer are left out: together they are less than a thousandth.
"""

from dataclasses import dataclass

from asap.core.errors import InsufficientEvidenceError
from asap.models.architecture import Architecture


@dataclass(frozen=True)
class Parameters:
    """Parameters of one layer's parts and of what lies outside the layers. All are counts of elements."""

    dense_layers: int
    moe_layers: int
    attention: int
    """Projections of queries, keys, values and output, one layer; on average where layers differ."""
    mlp: int
    """The MLP of a dense layer; 0 if there is none."""
    expert: int
    """One routed or shared expert; 0 for a dense model."""
    routed_experts: int
    active_experts: int
    """Routed experts that one token visits."""
    shared_experts: int
    router: int
    norms: int
    """The two norms of a layer."""
    embedding: int
    """Token embedding and learned positions."""
    head: int
    """Output projection and final norm; only the norm where embeddings are tied."""

    @property
    def dense_layer(self) -> int:
        """One layer with an ordinary MLP."""
        return self.attention + self.norms + self.mlp

    @property
    def moe_layer(self) -> int:
        """One layer with all of its experts."""
        return self._moe_layer(self.routed_experts)

    @property
    def active_moe_layer(self) -> int:
        """What one token uses of a layer with experts."""
        return self._moe_layer(self.active_experts)

    @property
    def layers(self) -> int:
        """All layers, without embedding and head."""
        return self.dense_layers * self.dense_layer + self.moe_layers * self.moe_layer

    @property
    def active_layers(self) -> int:
        """What one token uses of all layers."""
        return self.dense_layers * self.dense_layer + self.moe_layers * self.active_moe_layer

    @property
    def total(self) -> int:
        """Everything that is stored."""
        return self.layers + self.embedding + self.head

    @property
    def active(self) -> int:
        """Everything but the experts that a token does not visit."""
        return self.active_layers + self.embedding + self.head

    def _moe_layer(self, routed: int) -> int:
        return self.attention + self.norms + self.router + (routed + self.shared_experts) * self.expert


def count_parameters(model: Architecture) -> Parameters:
    """Parameters of an architecture.

    Raises:
        InsufficientEvidenceError: a shape that is needed is unknown.
    """
    if missing := model.missing():
        raise InsufficientEvidenceError(
            f"parameters cannot be counted without {', '.join(missing)}",
            where=model.name,
            hint="add them to the model's configuration",
        )
    width, vocab = model.d_model or 0, model.vocab or 0
    matrices = 3 if model.gated_mlp else 2
    return Parameters(
        dense_layers=model.dense_layers,
        moe_layers=model.moe_layers,
        attention=_attention(model, width),
        mlp=matrices * width * (model.d_ff or 0) if model.dense_layers else 0,
        expert=matrices * width * (model.expert_d_ff or 0) if model.is_moe else 0,
        routed_experts=model.experts,
        active_experts=model.experts_per_token,
        shared_experts=model.shared_experts,
        router=width * model.experts,
        norms=2 * width,
        embedding=width * (vocab + model.learned_positions),
        head=width + (0 if model.tied_embeddings else width * vocab),
    )


def least_training_flops(model: Architecture, length: int) -> float:
    """FLOPs of a token in training that no layout avoids: products with the weights, causal attention where it is full.

    Six a parameter, of forward and backward pass (How to Scale Your Model, "All the Transformer Math").

    ``length`` is in tokens of a sequence; raises like :func:`count_parameters`.
    """
    count = count_parameters(model)
    table = 0 if model.tied_embeddings else count.embedding
    width: float = model.head_dim or 0
    if model.is_mla:
        width = ((model.qk_nope_head_dim or 0) + (model.qk_rope_head_dim or 0) + (model.v_head_dim or 0)) / 2
    scores = 0 if model.sliding_window else (model.layers or 0) * (model.heads or 0) * width * length
    return 6.0 * (count.active - table + scores)


def _attention(model: Architecture, width: int) -> int:
    if model.attention_parameters is not None:
        return model.attention_parameters
    if model.is_mla:
        return _latent_attention(model, width)
    heads, kv_heads, head_dim = model.heads or 0, model.kv_heads or 0, model.head_dim or 0
    return 2 * width * head_dim * (heads + kv_heads)


def _latent_attention(model: Architecture, width: int) -> int:
    heads, rank = model.heads or 0, model.kv_lora_rank or 0
    nope, rope, value = model.qk_nope_head_dim or 0, model.qk_rope_head_dim or 0, model.v_head_dim or 0
    queries = heads * (nope + rope)
    query = model.q_lora_rank * (width + queries) if model.q_lora_rank else width * queries
    return query + width * (rank + rope) + rank * heads * (nope + value) + heads * value * width


def linear_attention_parameters(
    width: int, key_heads: int, key_dim: int, value_heads: int, value_dim: int, kernel: int
) -> int:
    """Projections, gates and the convolution before them.

    Args:
        width: of the residual stream.
        key_heads, key_dim: heads of queries and keys, and their width.
        value_heads, value_dim: heads of values, and their width.
        kernel: tokens of the convolution.
    """
    keys, values = key_heads * key_dim, value_heads * value_dim
    convolution = (2 * keys + values) * kernel
    return width * (2 * keys + 2 * values + 2 * value_heads) + convolution + values * width
