"""What a layer leaves behind for its backward pass, what that needs besides, and the logits.

Korthikanti et al., arXiv:2205.05198, section 4, without dropout.
"""

from dataclasses import dataclass

import numpy as np

from asap.prediction.case import Case, Number
from asap.prediction.compute import ACTIVATION_BYTES, tokens_per_microbatch

NORM_IN_FP32 = 4.0  # input and normalised input, each as wide as two in bf16
NORM_TENSORS = 3.0  # of a norm that is not fused: input in fp32, and output before the weights


@dataclass(frozen=True, slots=True)
class Activations:
    """Bytes of one microbatch: ``kept`` and ``scores`` by each layer, ``working`` in one at a time, ``logits`` last."""

    kept: Number
    scores: Number
    working: Number
    logits: Number


def activations(case: Case) -> Activations:
    """What one device holds.

    With sequence parallelism the inputs of both blocks of a layer are gathered; who does not gather them again for the
    backward pass keeps them. What attention writes is needed again by an MLP that comes after it. There, gradients of
    the MLP come and go, and what is computed again.
    """
    model, work, layout = case.model, case.work, case.layout
    size, degree = ACTIVATION_BYTES * tokens_per_microbatch(case), layout.model
    split = np.where(work.sequence_parallel > 0, 1 / degree, 1.0)
    gathered = np.where(work.gathers_again > 0, split, 1.0)
    hidden = _hidden(case, model.gates + 1 + work.unfused_gate) / degree
    residual = model.blocks * ((1 + NORM_TENSORS * work.unfused_norm) * split + gathered)
    whole = size * (residual * model.width + (model.qkv_width + model.out_width) / degree + hidden)
    entry = size * model.width * split
    matrix = work.score_bytes * size / ACTIVATION_BYTES * work.sequence * model.heads / degree
    products = size * (
        layout.kept_qkv * model.qkv_width / degree
        + (model.blocks - 1) * layout.kept_out * model.width * split
        + layout.kept_mlp * (model.width * split + _hidden(case, model.gates) / degree)
    )
    compiled = work.compiled * size * _what_derivatives_read(case)
    again = np.maximum(layout.again_mlp, np.maximum(layout.again_qkv, layout.again_out))
    logits = work.logit_bytes * size / ACTIVATION_BYTES * model.vocab / np.where(work.parallel_loss > 0, degree, 1.0)
    return Activations(
        kept=entry * (1 - layout.host_activations) + layout.kept * np.maximum(whole + compiled - entry, 0.0) + products,
        scores=np.where(layout.again_attention > 0, 0.0, matrix),
        working=size * (hidden + model.width) + again * (whole + matrix),
        logits=logits / work.loss_chunks,
    )


def _what_derivatives_read(case: Case) -> Number:
    """Width of what XLA keeps besides: norms in fp32, before and after their scale; queries and keys after rotation;
    of a gated MLP the activation and its slope."""
    model, layout = case.model, case.layout
    split = np.where(case.work.sequence_parallel > 0, 1 / layout.model, 1.0)
    rotated = (model.qkv_width - model.key_value_width / 2) / layout.model
    norms = model.blocks * NORM_IN_FP32 * model.width * split
    return norms + rotated + 2 * (model.gates - 1) * _hidden(case, 1.0) / layout.model


def _hidden(case: Case, tensors: Number) -> Number:
    """Width of so many tensors of the MLP, mean over layers: those of each token's experts with its copies for them."""
    model = case.model
    moe_share = model.moe_layers / model.layers
    dense = tensors * (model.ff * (1 - moe_share) + model.shared_ff * moe_share)
    return dense + moe_share * model.experts_per_token * (tensors * model.expert_ff + 2 * model.width)
