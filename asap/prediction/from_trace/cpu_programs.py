"""What XLA's programs for a CPU move between their products, which is not what accelerators move.

They fuse less: what attention and MLP work on moves as often as the residual stream, and each device lays out every
gathered weight for its product. Passes are reads and writes of a whole tensor, forward and backward, counted in the
programs of jax 0.10 for a decoder of five layers whose tensors all differ in size (scripts/record_run.py, meshes 8x1x1,
4x2x1, 4x1x2 and 2x2x2): of what is no product and no collective, all operands and results.
"""

import numpy as np

from asap.prediction.step_model.compute import ACTIVATION_BYTES
from asap.prediction.step_model.constants import Constants
from asap.prediction.step_model.device_parameters import owned_parameters, stage_parameters
from asap.prediction.step_model.inputs import Number, StepInputs

RESIDUAL_PASSES = 61.0
HIDDEN_PASSES = 22.0
"""Of the MLP's input projections and of their product."""
ATTENTION_PASSES = 20.0
"""Of queries, keys, values and what attention writes."""
SCORE_PASSES = 30.0
STRIDED_SCORE_PASSES = 8.0
"""What transposes of scores take besides where the next score of a column lies a multiple of 4 KiB on: 5.5 ns of a core
for each score in the steps of eight devices, 3.0 ns at 2 KiB. Alone on a core 9 to 16 ns, and 2.8 ns."""
LOGIT_PASSES = 7.0
WEIGHT_PASSES = 4.0
"""Of weights as gathered."""
STATE_PASSES = 17.0
"""Of the parameters that a device owns: the update, and slices of the stack of layers."""
UNFUSED_SUM_PASSES = 4.0
"""What a sum of products takes besides where it is not fused. Alone on a core it takes 2.4 to 3.0 ns more for each
product (0.3 to 1.4 ns fused), which are 3.7 to 4.6 passes at the bandwidth of a virtual device."""
CACHE_WAY_BYTES = 4096
"""Of the first-level caches of x86 cores: addresses that are multiples of it apart share one set of lines."""


def memory_seconds(inputs: StepInputs, constants: Constants) -> Number:
    """Of one device in one step that computes nothing again."""
    model, layout = inputs.model, inputs.plan
    tokens = layout.microbatches * inputs.tokens_per_microbatch
    inner = HIDDEN_PASSES * (model.up_projections + 1) * _mlp_width(inputs)
    inner = inner + ATTENTION_PASSES * (model.qkv_width + model.out_width)
    of_layer = tokens * (RESIDUAL_PASSES * model.width + inner / layout.model) + _score_passes(inputs) * _scores(inputs)
    activations = inputs.layers_per_stage * of_layer + LOGIT_PASSES * tokens * model.vocab / layout.model
    gathered = WEIGHT_PASSES * layout.microbatches * stage_parameters(inputs)
    owned = STATE_PASSES * owned_parameters(inputs).under_zero(inputs, 1)
    size = np.maximum(inputs.workload.operand_bytes, ACTIVATION_BYTES)
    return (size * activations + inputs.workload.parameter_bytes * (gathered + owned)) / _bandwidth(inputs, constants)


def unfused_sum_seconds(inputs: StepInputs, constants: Constants) -> Number:
    """Of one device in one step: sums of products in the backward pass, over the keys of a softmax and the width of
    a norm.

    XLA drops a dimension of one from what is multiplied, and then YNN, which computes the sum, does not fuse them.
    Scores have a dimension each for sequences, groups of heads with the same keys, and heads of such a group; what is
    normalised, one for sequences. Two norms a layer and a last one are taken for granted.
    """
    model, layout = inputs.model, inputs.plan
    sequences = inputs.sequences_per_microbatch
    heads = np.minimum(model.kv_heads / layout.model, model.heads / model.kv_heads)
    scores = np.where(np.minimum(sequences, heads) <= 1, inputs.layers_per_stage * _scores(inputs), 0.0)
    stream = inputs.tokens_per_microbatch * model.width
    normalised = np.where(sequences <= 1, (2 * inputs.layers_per_stage + 1) * stream, 0.0)
    size = np.maximum(inputs.workload.operand_bytes, ACTIVATION_BYTES)
    moved = UNFUSED_SUM_PASSES * size * layout.microbatches * (scores + normalised)
    return moved / _bandwidth(inputs, constants)


def _score_passes(inputs: StepInputs) -> Number:
    """Products keep the scores of a group of heads key by key, and what lies between products, query by query.

    Transposes walk down the columns of the former. The larger the power of two in the bytes from one key to the next,
    the fewer sets of a cache hold the lines of a column.
    """
    model, layout = inputs.model, inputs.plan
    groups = np.maximum(model.kv_heads / layout.model, 1)
    rows = model.heads / layout.model / groups * inputs.workload.sequence / layout.seq
    size = np.maximum(inputs.workload.operand_bytes, ACTIVATION_BYTES)
    power_of_two = np.gcd(np.rint(rows * size).astype(int), CACHE_WAY_BYTES)
    return SCORE_PASSES + STRIDED_SCORE_PASSES * power_of_two / CACHE_WAY_BYTES


def _scores(inputs: StepInputs) -> Number:
    """Of one layer and microbatch."""
    scores = inputs.tokens_per_microbatch * inputs.workload.sequence * inputs.model.heads / inputs.plan.model
    return np.where(inputs.workload.fused_attention > 0, 0.0, scores)


def _mlp_width(inputs: StepInputs) -> Number:
    """Mean over layers; in those of experts, of all that a token goes to."""
    model, share = inputs.model, inputs.model.moe_share
    return model.mlp_width * (1 - share) + share * (
        inputs.computed_experts * model.expert_mlp_width + model.shared_mlp_width
    )


def _bandwidth(inputs: StepInputs, constants: Constants) -> Number:
    return inputs.hardware.hbm_bandwidth * constants.memory_efficiency
