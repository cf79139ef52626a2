"""The architecture of a decoder-only transformer, dense or mixture of experts.

Every field but the name may be unknown (``None``): unknown is not zero. What a step needs and does not find
is named by :meth:`Architecture.missing`.
"""

import math

from pydantic import BaseModel, ConfigDict, Field, model_validator

from asap.core.units import Count, CountOrZero

REQUIRED = ("layers", "d_model", "heads", "kv_heads", "head_dim", "d_ff", "vocab")
SHAPES = " ".join(f"model.{field}=…" for field in REQUIRED)
"""An architecture as fields of a record, as they are added to a command."""


class Architecture(BaseModel):
    """Shapes of a decoder. Lengths are counts of elements."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str | None = None
    layers: Count | None = None
    d_model: Count | None = Field(default=None, description="width of the residual stream")
    d_ff: Count | None = Field(default=None, description="hidden width of a dense MLP")
    heads: Count | None = Field(default=None, description="query heads")
    kv_heads: Count | None = Field(default=None, description="key/value heads (GQA); heads for MHA")
    head_dim: Count | None = None
    vocab: Count | None = None
    vocab_assumed: bool = Field(default=False, description="the vocabulary is not stated, and taken as a usual one")
    gated_mlp: bool = Field(default=True, description="three matrices (SwiGLU, GeGLU) instead of two")
    tied_embeddings: bool = False
    parallel_block: bool = Field(
        default=False,
        description="attention and MLP both read the input of their layer and are added at once (PaLM, section 2)",
    )
    qk_norm: bool = Field(default=False, description="a norm of each head's queries and keys (Qwen3, Gemma 3)")
    learned_positions: CountOrZero = Field(default=0, description="rows of a learned position embedding; 0: none")

    experts: CountOrZero = Field(default=0, description="routed experts; 0 for a dense model")
    experts_per_token: CountOrZero = Field(default=0, description="top-k of the router")
    expert_d_ff: Count | None = Field(default=None, description="hidden width of one expert")
    shared_experts: CountOrZero = 0
    leading_dense_layers: CountOrZero = 0
    moe_every: Count = Field(default=1, description="after the leading ones, one MoE layer in so many")

    mtp_layers: CountOrZero = Field(
        default=0,
        description="layers of multi-token prediction, each with a loss of its own (DeepSeek-V3, arXiv:2412.19437,"
        " section 2.2); not counted as parameters of the model",
    )

    sliding_window: Count | None = Field(default=None, description="tokens a local layer attends to")
    global_layer_every: Count | None = Field(
        default=None, description="with a window: one full-attention layer in so many; None: all are local"
    )

    attention_parameters: Count | None = Field(
        default=None, description="of attention in a layer, on average where layers have different attention"
    )

    q_lora_rank: Count | None = Field(default=None, description="MLA: rank of the query projection")
    kv_lora_rank: Count | None = Field(default=None, description="MLA: rank of the latent KV cache")
    qk_nope_head_dim: Count | None = None
    qk_rope_head_dim: Count | None = None
    v_head_dim: Count | None = None

    @model_validator(mode="after")
    def _experts_are_consistent(self) -> "Architecture":
        if self.experts and not 0 < self.experts_per_token <= self.experts:
            raise ValueError(f"{self.experts} experts need 1 to {self.experts} experts per token")
        return self

    @property
    def is_moe(self) -> bool:
        """Whether some layers route tokens to experts."""
        return self.experts > 0

    @property
    def moe_layers(self) -> int:
        """Layers that route tokens to experts; 0 if the number of layers is unknown."""
        return (self.layers or 0) - self.dense_layers

    @property
    def dense_layers(self) -> int:
        """Layers with an ordinary MLP; 0 if the number of layers is unknown."""
        layers = self.layers or 0
        if not self.is_moe:
            return layers
        leading = min(self.leading_dense_layers, layers)
        return layers - (layers - leading) // self.moe_every

    @property
    def is_mla(self) -> bool:
        """Whether attention is multi-head latent attention (DeepSeek-V2, arXiv:2405.04434)."""
        return self.kv_lora_rank is not None

    def missing(self) -> tuple[str, ...]:
        """The fields that a training step needs and that are unknown."""
        needed = REQUIRED
        if self.is_mla:
            needed = tuple(f for f in needed if f not in ("kv_heads", "head_dim"))
            needed += ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        if self.is_moe:
            needed += ("expert_d_ff",)
            if self.leading_dense_layers == 0 and self.moe_every == 1:
                needed = tuple(f for f in needed if f != "d_ff")
        return tuple(field for field in needed if getattr(self, field) is None)


def pattern_length(model: Architecture) -> int:
    """Layers until it repeats, where dense and MoE layers, or local and global attention, alternate; else 1."""
    windows = (model.global_layer_every or 1) if model.sliding_window is not None else 1
    return math.lcm(model.moe_every if model.is_moe else 1, windows)
