"""What a TPU holds beside the state and what is kept for the backward pass: so many tensors of each width.

Fitted to programs that the TPU compiler planned. ``tpu_buffers.json`` is written by ``scripts/calibrate --compiled``.
"""

import json
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

BUNDLED = Path(__file__).with_name("tpu_buffers.json")


class TpuBuffers(BaseModel):
    """Numbers of tensors in HBM at once. In bf16, of all tokens of a microbatch, unless said otherwise."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    logits: float = Field(default=1.0, description="in the loss: logits, as the tensor axis divides them")
    loss_residuals: float = Field(default=3.0, description="in the loss: of the residual stream's width")
    head: float = Field(default=2.0, description="in the loss: output matrices, gathered, with their whole gradient")
    hidden: float = Field(default=4.0, description="in the backward pass of a layer: of a gated MLP's width")
    ungated_hidden: float = Field(default=3.0, description="the same of an MLP without a gate")
    residuals: float = Field(default=4.0, description="there: of the residual stream's width")
    projections: float = Field(default=1.5, description="there: of queries, keys, values and context together")
    gathered_keys: float = Field(default=1.0, description="there: keys and values of the whole sequence")
    kept_keys: float = Field(default=0.5, description="of what is kept: keys and values of the rest of the sequence")
    layer_weights: float = Field(default=1.5, description="there: weights of the layer, gathered, with their gradient")
    block_weights: float = Field(default=0.5, description="there: the same of each other layer of its block")
    of_block: float = Field(default=0.35, description="there: of what other dense layers of its block compute again")
    of_moe_block: float = Field(default=0.7, description="there: of what other MoE layers of its block compute again")
    routed: float = Field(default=4.0, description="there: the residual stream's width for each expert of a token")
    accumulators: float = Field(default=1.0, description="of microbatches: gradients, as wide as these")
    queued: float = Field(default=2.0, description="of a pipeline's whole batch: of the residual stream's width")
    streamed: float = Field(default=0.5, description="in the update: of moments that lie in host memory")
    streamed_tensors: float = Field(default=2.0, description="there: of those of the largest tensor besides")
    kept_layer: float = Field(default=1.0, description="of what a layer without recomputation writes, what is kept")


class HbmScore(BaseModel):
    """Modelled HBM against what the compiler plans. Fractions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    programs: int
    median_error: float | None = None
    p90_error: float | None = None
    wrong_verdicts: float | None = Field(default=None, description="fits by the model and not by the compiler, or not")


class FittedBuffers(BaseModel):
    """The numbers, the compilers that they were learnt from, and how well they do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    compilers: tuple[str, ...]
    fitted: HbmScore
    kept_out: HbmScore = Field(description="models that no fit and no choice used")
    buffers: TpuBuffers


@cache
def load_tpu_buffers() -> TpuBuffers:
    """The numbers that come with this version."""
    return FittedBuffers.model_validate(json.loads(BUNDLED.read_text(encoding="utf-8"))).buffers
