"""HBM of a step on a TPU beside its state: the largest of three phases.

XLA plans all buffers ahead of time, so a device needs what is alive at one moment: in the loss, before gradients of the
layers exist; in the backward pass of the first layer, when all of them do; or in the update, when moments that lie in
host memory are back.
"""

import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from asap.prediction.step_model.activations import Activations, activations
from asap.prediction.step_model.compute import ACTIVATION_BYTES
from asap.prediction.step_model.device_parameters import largest_tensor, layer_parameters
from asap.prediction.step_model.inputs import Number, StepInputs, anywhere

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


@dataclass(frozen=True, slots=True)
class TpuPeak:
    """Bytes of one device beside parameters and the optimizer's state in HBM, at one moment of the step."""

    gradients: Number
    moments: Number
    activations: Number
    attention: Number
    temporaries: Number
    collectives: Number

    @property
    def total(self) -> Number:
        """All of them."""
        return self.gradients + self.moments + self.activations + self.attention + self.temporaries + self.collectives


def tpu_peak(
    inputs: StepInputs, buffers: TpuBuffers, owned: Number, moments: Number, in_flight: tuple[Number, Number]
) -> TpuPeak:
    """The phase that needs most.

    Args:
        inputs: the step.
        buffers: how many tensors of each width are alive.
        owned: parameters of one device after all sharding.
        moments: bytes of the optimizer's state in host memory.
        in_flight: microbatches whose activations the first and the last pipeline stage keep.
    """
    layer, residual = activations(inputs), _residual(inputs)
    kept, scores = inputs.layers_per_stage * _kept(inputs, buffers, layer), inputs.layers_per_stage * layer.scores
    gradients, accumulated = inputs.workload.gradient_bytes * owned, _accumulated(inputs, buffers, owned)
    first, last = in_flight
    batch = np.where(inputs.plan.stages > 1, inputs.plan.microbatches, 0.0)
    loss = TpuPeak(
        gradients=accumulated,
        moments=0.0,
        activations=last * kept,
        attention=last * scores,
        temporaries=np.maximum(batch, 1.0) * (buffers.logits * layer.logits + buffers.loss_residuals * residual),
        collectives=buffers.head * (ACTIVATION_BYTES * inputs.model.vocab * inputs.model.width / inputs.plan.model),
    )
    backward = TpuPeak(
        gradients=gradients + accumulated,
        moments=0.0,
        activations=first * kept,
        attention=first * scores,
        temporaries=_layer_bytes(inputs, buffers)
        + (buffers.residuals + buffers.queued * batch) * residual
        + layer.scores_again
        + block_share(inputs, buffers) * layer.of_block,
        collectives=_gathered(inputs, buffers),
    )
    larger = _larger(loss, backward)
    if not anywhere(moments):
        return larger
    return _larger(larger, TpuPeak(gradients, _streamed(inputs, buffers, owned) * moments, 0.0, 0.0, 0.0, 0.0))


def _streamed(inputs: StepInputs, buffers: TpuBuffers, owned: Number) -> Number:
    """Share of the moments in host memory that the update holds at once: at most all of them twice, before it and after
    it. Whole tensors are copied, several at a time, so it is more where one tensor is much of the model."""
    return np.minimum(buffers.streamed + buffers.streamed_tensors * largest_tensor(inputs) / owned, 2.0)


def block_share(inputs: StepInputs, buffers: TpuBuffers) -> Number:
    """Of what the other layers of a block compute again, what is held at once beside a layer."""
    moe_share = inputs.model.moe_share
    return buffers.of_block * (1 - moe_share) + buffers.of_moe_block * moe_share


def _larger(one: TpuPeak, other: TpuPeak) -> TpuPeak:
    more = other.total > one.total
    parts = [(getattr(other, part.name), getattr(one, part.name)) for part in fields(TpuPeak)]
    return TpuPeak(*(first if first is second else np.where(more, first, second) for first, second in parts))


def _residual(inputs: StepInputs) -> Number:
    """The residual stream, which tensor parallelism brings together for the products of a block."""
    return ACTIVATION_BYTES * inputs.tokens_per_microbatch * inputs.model.width


def _kept(inputs: StepInputs, buffers: TpuBuffers, layer: Activations) -> Number:
    """By one layer: named tensors exactly; of whole layers what XLA does not compute again; with context parallelism
    some of the keys and values that it has gathered."""
    layout = inputs.plan
    whole = (1 - (1 - buffers.kept_layer) * layout.kept_layer) * layer.kept
    size = ACTIVATION_BYTES * inputs.tokens_per_microbatch
    kept = layout.kept_qkv + layout.recompute_attention * layout.kept_layer
    keys = buffers.kept_keys * kept + (1 - layout.recompute_attention) * layout.kept_layer
    return whole + size * keys * (layout.seq - 1) * inputs.held_key_value_width


def _layer_bytes(inputs: StepInputs, buffers: TpuBuffers) -> Number:
    """What the backward pass of a layer has in hand, beside the residual stream."""
    model, degree = inputs.model, inputs.plan.model
    moe_share, routed = model.moe_share, model.moe_share * inputs.computed_experts
    dense = model.mlp_width * (1 - moe_share) + model.shared_mlp_width * moe_share
    hidden = (dense + routed * model.expert_mlp_width) / degree
    projections = inputs.held_qkv_width + model.out_width / degree
    of_hidden = np.where(model.up_projections > 1, buffers.hidden, buffers.ungated_hidden)
    widths = of_hidden * hidden + buffers.projections * projections + buffers.routed * routed * model.width
    return ACTIVATION_BYTES * inputs.tokens_per_microbatch * widths


def _gathered(inputs: StepInputs, buffers: TpuBuffers) -> Number:
    """The weights of a layer, some of those of the other layers of its block, and with context parallelism its keys and
    values of the whole sequence."""
    layout = inputs.plan
    layers = buffers.layer_weights + buffers.block_weights * (inputs.workload.layers_together - 1)
    sequence = np.where(layout.seq > 1, inputs.tokens_per_microbatch * layout.seq, 0.0)
    keys = buffers.gathered_keys * sequence * inputs.held_key_value_width
    return ACTIVATION_BYTES * (layers * layer_parameters(inputs) + keys)


def _accumulated(inputs: StepInputs, buffers: TpuBuffers, owned: Number) -> Number:
    """Gradients of earlier microbatches, or of earlier iterations of a pipeline's loop."""
    layout = inputs.plan
    several = np.where((layout.microbatches > 1) | (layout.stages > 1), 1.0, 0.0)
    return buffers.accumulators * inputs.workload.gradient_bytes * owned * several
