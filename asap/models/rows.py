"""An architecture from one row of a table of published models.

A row has what its source published: shapes, and the names of its family. What is not published is derived by the
rules of the family, never guessed:

- key/value heads are the query heads, and a head is ``d_model / n_heads`` wide;
- GPT (GPT-2, GPT-3, MPT, Megatron, early MaxText): an MLP of two matrices, ``4 d_model`` wide, tied embeddings;
  without a vocabulary, GPT-2's 50,257 tokens as Megatron-LM pads them to 51,200 (BigScience also trained with
  its own 250,880: the published size tells which);
- the order of local and full attention, norms of queries and keys, and the order of dense and expert layers belong to
  the decoder block; linear attention (Qwen3-Next, Qwen3.5) stands as a window of its chunk of 64 tokens;
- early MaxText, and its block ``default``, adds attention and MLP to the residual stream at once, since January 2023
  (its commit d03e6bf8f);
- Alpa's mixtures of experts follow GShard: every other layer, two experts a token, MLPs ``8 d_model`` wide.
"""

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asap.core.errors import ConfigError, InsufficientEvidenceError
from asap.core.text import plain
from asap.models.architecture import Architecture

_GPT2_PADDED, _BLOOM = 51_200, 250_880
_VOCABULARIES = {"nemotron": 256_000, "vocab 32k": 32_000, "vocab 65k": 65_024, "llama2": 32_000}
_FULL_ATTENTION_EVERY = {"gemma2": 2, "gemma3": 6, "gemma4": 6, "gpt_oss": 2, "olmo3": 4, "llama4": 4}
_LINEAR_ATTENTION = {"qwen3_next": 64, "qwen3_5": 64}
_LINEAR_ATTENTION_FULL_EVERY = 4
_LLAMA4_CHUNK = 8192
_QK_NORM = ("qwen3", "gemma3", "gemma4")
_NOT_MODELLED = {"deepseek4": "compressed attention", "gemma4_small": "an embedding in each layer"}


class ModelRow(BaseModel):
    """The keys of a row; any other is ignored. Absent means not published."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    model: str
    source: str = ""
    n_layers: int | None = None
    d_model: int | None = None
    d_ff: int | None = None
    derived_d_ff: int | None = None
    mlp_ratio: Fraction | None = Field(default=None, description="d_ff / d_model; d_ff is rounded up to 256")
    moe_d_ff: int | None = None
    n_heads: int | None = None
    n_kv_heads: int | None = None
    head_dim: int | None = None
    vocab: int | None = None
    n_experts: int | None = None
    top_k: int | None = None
    n_shared_experts: int = 0
    first_dense_layers: int = 0
    mtp_layers: int = 0
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    qk_nope_head_dim: int | None = None
    qk_rope_head_dim: int | None = None
    v_head_dim: int | None = None
    sliding_window: int | None = None
    activation: str | None = None
    decoder_block: str | None = None
    tied_embeddings: bool | None = None
    model_params_b: float | None = Field(default=None, description="published size in 10⁹ parameters")

    @property
    def family(self) -> str:
        """Name and source, in lower case, as the rules look for them."""
        return f"{self.model} {self.source}".casefold()

    @property
    def gated(self) -> bool:
        """Three MLP matrices, by the activation; without one, by the family."""
        if self.activation:
            activation = self.activation.casefold()
            return "linear" in activation or "glu" in activation
        return not self.model.casefold().startswith(("gpt", "moe", "maxtext"))

    @property
    def gpt_like(self) -> bool:
        """A descendant of GPT-2: MLP of two matrices; Nemotron's squared ReLU is another family."""
        return not self.gated and "nemotron" not in self.family

    @property
    def tied(self) -> bool:
        """One matrix for embedding and output; unpublished, by the family (Megatron's H100 runs untie them)."""
        if self.tied_embeddings is not None:
            return self.tied_embeddings
        return self.gpt_like and "megatron h100" not in self.family

    @property
    def parallel(self) -> bool:
        """Attention and MLP side by side."""
        early = self.decoder_block is None and self.model.casefold().startswith("maxtext-")
        return early or self.decoder_block == "default"

    @property
    def gshard(self) -> bool:
        """One of Alpa's models."""
        return re.search(r"\balpa\b", self.family) is not None


def architecture_from_row(row: Mapping[str, Any]) -> Architecture:
    """The architecture of a row; a run's own shapes (heads, vocabulary, experts) may be laid over the model's.

    Raises:
        ConfigError: a value has the wrong type or contradicts another.
        InsufficientEvidenceError: the family has parts that an :class:`Architecture` cannot say.
    """
    try:
        return _architecture(ModelRow.model_validate(row))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            plain(f"{field}: {first['msg']}", 200), where=plain(row.get("model", "model row"), 80)
        ) from error


def _architecture(row: ModelRow) -> Architecture:
    if row.decoder_block in _NOT_MODELLED:
        raise InsufficientEvidenceError(
            f"{_NOT_MODELLED[row.decoder_block]} is not modelled", where=plain(row.model, 80)
        )
    return Architecture(
        name=row.model,
        layers=2 * row.n_layers if row.n_layers and row.decoder_block == "gemma2" else row.n_layers,
        d_model=row.d_model,
        heads=row.n_heads,
        vocab=row.vocab or _vocabulary(row),
        gated_mlp=row.gated,
        tied_embeddings=row.tied,
        parallel_block=row.parallel,
        mtp_layers=row.mtp_layers,
        qk_norm=(row.decoder_block or "").startswith(_QK_NORM),
        **_attention(row),
        **_mlp(row),
    )


def _attention(row: ModelRow) -> dict[str, Any]:
    if row.kv_lora_rank:
        return {
            "kv_heads": row.n_kv_heads or row.n_heads,
            "q_lora_rank": row.q_lora_rank or None,
            "kv_lora_rank": row.kv_lora_rank,
            "qk_nope_head_dim": row.qk_nope_head_dim,
            "qk_rope_head_dim": row.qk_rope_head_dim,
            "v_head_dim": row.v_head_dim,
        }
    block = row.decoder_block or ""
    width = row.d_model // row.n_heads if row.d_model and row.n_heads and row.d_model % row.n_heads == 0 else None
    window = _LLAMA4_CHUNK if block == "llama4" else _LINEAR_ATTENTION.get(block, row.sliding_window)
    every = _FULL_ATTENTION_EVERY.get(block, _LINEAR_ATTENTION_FULL_EVERY if block in _LINEAR_ATTENTION else None)
    return {
        "kv_heads": row.n_kv_heads or row.n_heads,
        "head_dim": row.head_dim or width,
        "sliding_window": window,
        "global_layer_every": every if window else None,
    }


def _mlp(row: ModelRow) -> dict[str, Any]:
    dense = row.d_ff or row.derived_d_ff or _ratio_width(row)
    if not row.n_experts:
        if row.model.casefold().startswith("moe"):
            raise InsufficientEvidenceError("the number of experts is unknown", where=plain(row.model, 80))
        return {"d_ff": dense}
    expert = row.moe_d_ff or dense
    alternates = row.decoder_block == "envy" or row.gshard or (row.decoder_block == "llama4" and dense != expert)
    shared = row.n_shared_experts
    if row.decoder_block == "gemma4" and dense and expert:
        shared = dense // expert
    return {
        "d_ff": dense,
        "experts": row.n_experts,
        "experts_per_token": row.top_k or (2 if row.gshard else 0),
        "expert_d_ff": expert,
        "shared_experts": shared,
        "leading_dense_layers": row.first_dense_layers,
        "moe_every": 2 if alternates else 1,
    }


def _ratio_width(row: ModelRow) -> int | None:
    if row.d_model is None:
        return None
    if row.mlp_ratio:
        return 256 * math.ceil(row.d_model * row.mlp_ratio / 256)
    if not row.gpt_like:
        return None
    return row.d_model * (8 if row.n_experts and row.gshard else 4)


def _vocabulary(row: ModelRow) -> int | None:
    stated = next((size for family, size in _VOCABULARIES.items() if family in row.family), None)
    if stated or not row.gpt_like:
        return stated
    if "bigscience" not in row.family or not (row.model_params_b and row.n_layers and row.d_model):
        return _GPT2_PADDED
    embedding = row.model_params_b * 1e9 - 12 * row.n_layers * row.d_model**2
    return _BLOOM if 2 * embedding > (_GPT2_PADDED + _BLOOM) * row.d_model else _GPT2_PADDED
