"""What XLA's programs for a CPU move between their products, which is not what accelerators move.

They fuse less: what attention and MLP work on moves as often as the residual stream, and each device lays out every
gathered weight for its product. Passes are reads and writes of a whole tensor, forward and backward, counted in the
programs of jax 0.10 for a decoder of five layers whose tensors all differ in size (scripts/record_run.py, meshes 8x1x1,
4x2x1, 4x1x2 and 2x2x2): of what is no product and no collective, all operands and results.
"""

import numpy as np

from asap.prediction.step_model.compute import ACTIVATION_BYTES, sequences_per_microbatch, tokens_per_microbatch
from asap.prediction.step_model.constants import Constants
from asap.prediction.step_model.device_parameters import owned_parameters, stage_parameters
from asap.prediction.step_model.inputs import Number, StepInputs

RESIDUAL_PASSES = 61.0
HIDDEN_PASSES = 22.0
"""Of the MLP's input projections and of their product."""
ATTENTION_PASSES = 20.0
"""Of queries, keys, values and what attention writes."""
SCORE_PASSES = 30.0
LOGIT_PASSES = 7.0
WEIGHT_PASSES = 4.0
"""Of weights as gathered."""
STATE_PASSES = 17.0
"""Of the parameters that a device owns: the update, and slices of the stack of layers."""
UNFUSED_SUM_PASSES = 4.0
"""What a sum over the keys takes besides where it is not fused. Alone on a core it takes 2.4 to 3.0 ns more for each
score (0.3 to 1.4 ns fused), which are 3.7 to 4.6 passes at the bandwidth of a virtual device."""


def memory_seconds(inputs: StepInputs, constants: Constants) -> Number:
    """Of one device in one step that computes nothing again."""
    model, layout = inputs.model, inputs.plan
    tokens = layout.microbatches * tokens_per_microbatch(inputs)
    inner = HIDDEN_PASSES * (model.up_projections + 1) * _mlp_width(inputs)
    inner = inner + ATTENTION_PASSES * (model.qkv_width + model.out_width)
    of_layer = tokens * (RESIDUAL_PASSES * model.width + inner / layout.model) + SCORE_PASSES * _scores(inputs)
    activations = inputs.layers_per_stage * of_layer + LOGIT_PASSES * tokens * model.vocab / layout.model
    gathered = WEIGHT_PASSES * layout.microbatches * stage_parameters(inputs)
    owned = STATE_PASSES * owned_parameters(inputs).under_zero(inputs, 1)
    size = np.maximum(inputs.workload.operand_bytes, ACTIVATION_BYTES)
    return (size * activations + inputs.workload.parameter_bytes * (gathered + owned)) / _bandwidth(inputs, constants)


def unfused_sum_seconds(inputs: StepInputs, constants: Constants) -> Number:
    """Of one device in one step: sums over the keys in the backward pass of a softmax.

    Scores have a dimension each for sequences, groups of heads with the same keys, and heads of such a group. XLA drops
    a dimension of one from what it multiplies them with, and then YNN, which computes the sum, does not fuse them.
    """
    model, layout = inputs.model, inputs.plan
    heads = np.minimum(model.kv_heads / layout.model, model.heads / model.kv_heads)
    smallest = np.minimum(sequences_per_microbatch(inputs), heads)
    moved = UNFUSED_SUM_PASSES * layout.microbatches * inputs.layers_per_stage * _scores(inputs)
    size = np.maximum(inputs.workload.operand_bytes, ACTIVATION_BYTES)
    return np.where(smallest <= 1, size * moved / _bandwidth(inputs, constants), 0.0)


def _scores(inputs: StepInputs) -> Number:
    """Of one layer and microbatch."""
    scores = tokens_per_microbatch(inputs) * inputs.workload.sequence * inputs.model.heads / inputs.plan.model
    return np.where(inputs.workload.fused_attention > 0, 0.0, scores)


def _mlp_width(inputs: StepInputs) -> Number:
    """Mean over layers; in those of experts, of all that a token goes to."""
    model, share = inputs.model, inputs.model.moe_share
    return model.mlp_width * (1 - share) + share * (
        inputs.computed_experts * model.expert_mlp_width + model.shared_mlp_width
    )


def _bandwidth(inputs: StepInputs, constants: Constants) -> Number:
    return inputs.hardware.hbm_bandwidth * constants.memory_efficiency
