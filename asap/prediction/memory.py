"""HBM of the fullest device, by part.

Model state: ZeRO, arXiv:1910.02054, section 3. Activations: Korthikanti et al., arXiv:2205.05198, section 4.
"""

from dataclasses import dataclass

import numpy as np

from asap.prediction.case import Case, Number
from asap.prediction.compute import ACTIVATION_BYTES, tokens_per_microbatch

NORM_TENSORS = 8.0  # two norms, each keeping its input and its normalised output in fp32 next to bf16


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of one device."""

    parameters: Number
    gradients: Number
    optimizer: Number
    activations: Number
    attention: Number
    temporaries: Number
    collectives: Number

    @property
    def total(self) -> Number:
        """All parts together."""
        return (
            self.parameters
            + self.gradients
            + self.optimizer
            + self.activations
            + self.attention
            + self.temporaries
            + self.collectives
        )


def layer_parameters(case: Case) -> Number:
    """Parameters of one layer (mean over layers) on one device, before data sharding."""
    model, layout = case.model, case.layout
    moe_share = model.moe_layers / model.layers
    matrices = (model.gates + 1) * model.width
    dense = model.attention_parameters + matrices * model.ff * (1 - moe_share)
    dense = dense + matrices * model.shared_ff * moe_share
    experts = moe_share * matrices * model.expert_ff * model.experts / layout.expert
    return (dense + experts) / layout.model


def parameters_per_device(case: Case) -> Number:
    """Parameters that a device of the fullest pipeline stage owns after all sharding."""
    model, layout = case.model, case.layout
    stages = layout.stage * layout.dcn_stage
    layers = np.ceil(model.layers / stages)
    embedding = model.vocab * model.width * np.where(stages > 1, 1.0, 2.0 - model.tied) / layout.model
    return (layers * layer_parameters(case) + embedding) / layout.data


def memory(case: Case) -> Memory:
    """What the fullest device holds at the peak of a step.

    In a pipeline that is the first stage, with the most microbatches in flight, or the last, with the logits.
    """
    work, layout = case.work, case.layout
    owned = parameters_per_device(case)
    shards = layout.replica * layout.dcn_replica * layout.dcn_data
    optimizer = owned * work.optimizer_bytes / np.where(work.zero_stage >= 1, shards, 1.0)
    gradients = owned * work.gradient_bytes / np.where(work.zero_stage >= 2, shards, 1.0)
    stages = layout.stage * layout.dcn_stage
    layers = np.ceil(case.model.layers / stages)
    kept, scores = layer_activations(case)
    logits = _logits(case)
    first, last = in_flight(case) * layers * (kept + scores), layers * (kept + scores) + logits
    at_end = (stages == 1) | (last > first)
    flight = np.where(at_end, 1.0, in_flight(case)) * layers
    again = np.maximum(layout.again_mlp, layout.again_projections)
    gathered = np.where(layout.data > 1, 2 * layer_parameters(case) * ACTIVATION_BYTES, 0.0)
    return Memory(
        parameters=owned * work.parameter_bytes,
        gradients=gradients,
        optimizer=optimizer * (1 - layout.host_optimizer),
        activations=flight * kept,
        attention=flight * scores,
        temporaries=np.where(at_end, logits, 0.0) + again * (full_layer(case) + score_matrix(case)),
        collectives=gathered,
    )


def in_flight(case: Case) -> Number:
    """Microbatches whose activations the first stage keeps: 1F1B, interleaved (arXiv:2104.04473, section 2.2)."""
    layout = case.layout
    stages = layout.stage * layout.dcn_stage
    depth = np.where(layout.repeats > 1, stages * (1 + (stages - 1) / (stages * layout.repeats)), stages)
    return np.minimum(depth, layout.microbatches)


def full_layer(case: Case) -> Number:
    """Bytes that the backward pass of one layer needs if nothing is computed again, without the score matrix."""
    model, work, layout = case.model, case.work, case.layout
    tokens = tokens_per_microbatch(case)
    residual = (
        (5 + NORM_TENSORS * work.unfused_norm) * model.width / np.where(work.sequence_parallel > 0, layout.model, 1.0)
    )
    moe_share = model.moe_layers / model.layers
    hidden = (model.gates + 1) * (model.ff * (1 - moe_share) + model.shared_ff * moe_share)
    routed = (model.gates + 1) * model.expert_ff + 2 * model.width
    hidden = hidden + moe_share * model.experts_per_token * routed
    inner = (model.qkv_width + model.out_width + hidden) / layout.model
    return ACTIVATION_BYTES * tokens * (residual + inner)


def layer_activations(case: Case) -> tuple[Number, Number]:
    """Bytes of one layer and microbatch that wait for the backward pass: activations, and the score matrix."""
    model, work, layout = case.model, case.work, case.layout
    tokens = tokens_per_microbatch(case)
    entry = ACTIVATION_BYTES * tokens * model.width / np.where(work.sequence_parallel > 0, layout.model, 1.0)
    kept = entry * (1 - layout.host_activations) + layout.kept * np.maximum(full_layer(case) - entry, 0.0)
    return kept, np.where(layout.again_attention > 0, 0.0, score_matrix(case))


def score_matrix(case: Case) -> Number:
    """Bytes of one layer's scores; none where the kernel keeps them on the chip."""
    model, work = case.model, case.work
    return work.score_bytes * tokens_per_microbatch(case) * work.sequence * model.heads / case.layout.model


def _logits(case: Case) -> Number:
    """Logits, their gradients, and what the loss makes of them."""
    return case.work.logit_bytes * tokens_per_microbatch(case) * case.model.vocab / case.layout.model
