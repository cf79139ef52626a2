"""Activations of one microbatch: what a layer keeps for its backward pass, what that needs while it runs, logits.

Korthikanti et al., arXiv:2205.05198, section 4, without dropout.
"""

from dataclasses import dataclass

import numpy as np

from asap.prediction.step_model.compute import ACTIVATION_BYTES, score_bytes
from asap.prediction.step_model.inputs import Number, StepInputs, once, select

NORM_IN_FP32 = 4.0  # input and normalised input, each as wide as two in bf16
NORM_TENSORS = 3.0  # of a norm that is not fused: input in fp32, and output before the weights


@dataclass(frozen=True, slots=True)
class Activations:
    """Bytes of one microbatch: ``kept`` and ``scores`` by each layer, ``working`` in one at a time, of that the scores
    that are computed again; ``of_block`` is what the other layers of its block compute again, ``logits`` come last."""

    kept: Number
    scores: Number
    scores_again: Number
    of_block: Number
    working: Number
    logits: Number


@once
def activations(inputs: StepInputs) -> Activations:
    """What one device holds.

    With sequence parallelism the inputs of both blocks of a layer are gathered; who does not gather them again for the
    backward pass keeps them. XLA gathers them again, but for what it routes to experts. What attention writes is needed
    again by an MLP that comes after it. There, gradients of the MLP come and go, and what is computed again.
    Transformer Engine keeps the inputs of FP8 products in FP8; attention keeps what it wrote in bf16 besides.
    """
    model, work, layout = inputs.model, inputs.workload, inputs.plan
    size, degree = ACTIVATION_BYTES * inputs.tokens_per_microbatch, layout.model
    split = select(work.sequence_parallel, 1 / degree, 1.0)
    gathered = select(work.regathers_activations, split, 1.0)
    gathered = select(work.xla, split + (1 - split) * model.moe_share / model.sequential_blocks, gathered)
    quantized = work.kept_input_bytes / ACTIVATION_BYTES
    context = model.out_width * np.where(quantized < 1, 1 + quantized, 1.0)
    hidden = _hidden(inputs, model.up_projections + quantized + work.unfused_glu) / degree
    hidden = hidden + _routed(inputs, quantized + work.keeps_expert_outputs)
    residual = model.sequential_blocks * ((1 + NORM_TENSORS * work.unfused_norm) * split + gathered * quantized)
    qkv = inputs.held_qkv_width
    whole = size * (residual * model.width + qkv + context / degree + hidden)
    entry = size * model.width * split
    scores = size / ACTIVATION_BYTES * work.sequence * model.heads / degree
    matrix = score_bytes(inputs, inputs.sequences_per_microbatch) * scores
    products = size * (
        layout.kept_qkv * qkv
        + layout.kept_context * model.out_width / degree
        + (model.sequential_blocks - 1) * layout.kept_out * model.width * split
        + layout.kept_mlp * _hidden(inputs, model.up_projections) / degree
    )
    derivatives = work.xla * size * _what_derivatives_read(inputs)
    logits = work.logit_bytes * size / ACTIVATION_BYTES * model.vocab / select(work.vocab_parallel_loss, degree, 1.0)
    each = layout.kept_layer + layout.kept_inputs
    inputs_kept = entry * (1 - layout.host_activations) * (each + (1 - each) / work.layers_together)
    written = np.maximum(whole + derivatives - entry, 0.0)
    written_again = (1 - layout.kept_layer) * np.maximum(written + entry - products, 0.0)
    return Activations(
        kept=inputs_kept + layout.kept_layer * np.maximum(written - size * _freed(inputs, gathered), 0.0) + products,
        scores=(1 - layout.recompute_attention) * matrix,
        scores_again=layout.recompute_layer * matrix,
        of_block=(work.layers_together - 1) * written_again,
        working=size * (hidden * (1 - work.xla * layout.recompute_layer) + model.width)
        + layout.recompute_layer * (whole + matrix),
        logits=logits / work.loss_chunks,
    )


def offloaded(inputs: StepInputs) -> Number:
    """Bytes of a layer and microbatch that one device sends to its host: the layer's input, and what products write."""
    model, work, layout = inputs.model, inputs.workload, inputs.plan
    size, degree = ACTIVATION_BYTES * inputs.tokens_per_microbatch, layout.model
    split = select(work.sequence_parallel, 1 / degree, 1.0)
    products = (
        layout.host_qkv * inputs.held_qkv_width
        + layout.host_context * model.out_width / degree
        + layout.host_out * model.width * split
        + layout.host_mlp * _hidden(inputs, model.up_projections) / degree
    )
    return size * (layout.host_activations * model.width * split + products)


def _freed(inputs: StepInputs, gathered: Number) -> Number:
    """Width of what single modules write that are computed again, of a layer that keeps all else."""
    model, work, layout = inputs.model, inputs.workload, inputs.plan
    quantized = work.kept_input_bytes / ACTIVATION_BYTES
    inside = model.up_projections + quantized + work.unfused_glu
    experts = model.moe_share * inputs.computed_experts * model.expert_mlp_width / layout.model
    dense, shared = (1 - model.moe_share) * model.mlp_width, model.moe_share * model.shared_mlp_width
    norms = model.sequential_blocks * gathered * (quantized + NORM_TENSORS * work.unfused_norm) * model.width
    return (
        layout.freed_norms * norms
        + layout.freed_qkv * inputs.held_qkv_width
        + inside * (layout.freed_mlp * dense + layout.freed_shared_experts * shared) / layout.model
        + layout.freed_experts * (inside * experts + _routed(inputs, quantized + work.keeps_expert_outputs))
        + layout.freed_activation * quantized * experts
    )


def _what_derivatives_read(inputs: StepInputs) -> Number:
    """Width of what XLA keeps besides: norms in fp32, before and after their scale; queries and keys after rotation;
    two tensors of the MLP's activation function."""
    model, layout = inputs.model, inputs.plan
    split = select(inputs.workload.sequence_parallel, 1 / layout.model, 1.0)
    rotated = inputs.held_qkv_width - inputs.held_key_value_width / 2
    norms = model.sequential_blocks * NORM_IN_FP32 * model.width * split
    return norms + rotated + 2 * _hidden(inputs, 1.0) / layout.model


def _hidden(inputs: StepInputs, tensors: Number) -> Number:
    """Width of so many tensors of the MLP, mean over layers: in MoE layers those of each token's experts."""
    model = inputs.model
    dense = model.mlp_width * (1 - model.moe_share) + model.shared_mlp_width * model.moe_share
    return tensors * (dense + model.moe_share * inputs.computed_experts * model.expert_mlp_width)


def _routed(inputs: StepInputs, tensors: Number) -> Number:
    """Width of so many tensors of a token's copies, sent to its experts and back; XLA's tensor ranks hold the same
    ones."""
    model, split = inputs.model, select(inputs.workload.xla, 1.0, inputs.plan.model)
    return tensors * model.moe_share * inputs.computed_experts * model.width / split
