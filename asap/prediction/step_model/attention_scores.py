"""The scores of attention, where they go through HBM: passes over them, and what the backward pass keeps.

Megatron's fused softmax takes the scores of four heads together. Where a device's heads and sequences of a microbatch
are not a multiple of four, PyTorch's own operations take them instead (Megatron-LM, ``fusions/fused_softmax.py``,
``is_kernel_available``).
"""

import numpy as np
from numpy.typing import NDArray

from asap.prediction.step_model.inputs import Number, StepInputs

PASSES = {"flash": 0.0, "softmax": 3.0, "unfused": 6.0}
"""HBM passes over the scores, forward, by class of kernel."""
KEPT_BYTES = {"flash": 0.0, "softmax": 5.0, "unfused": 14.0}
"""Bytes that a score keeps: fused, input and output of the softmax in bf16 and a dropout mask (arXiv:2205.05198,
section 4); unfused, three fp32 copies and a bf16 one."""
HEADS_TOGETHER = 4


def score_passes(inputs: StepInputs, sequences: Number) -> Number:
    """HBM passes over the scores of so many sequences, forward."""
    return np.where(_falls_back(inputs, sequences), PASSES["unfused"], inputs.workload.score_passes)


def score_bytes(inputs: StepInputs, sequences: Number) -> Number:
    """Bytes that each score of so many sequences keeps in HBM for the backward pass."""
    return np.where(_falls_back(inputs, sequences), KEPT_BYTES["unfused"], inputs.workload.score_bytes)


def _falls_back(inputs: StepInputs, sequences: Number) -> NDArray[np.bool_]:
    if not np.any(inputs.workload.megatron_softmax):
        return np.zeros((), dtype=np.bool_)
    heads = sequences * inputs.model.heads / inputs.plan.model
    return np.logical_and(np.mod(heads, HEADS_TOGETHER) > 0, np.asarray(inputs.workload.megatron_softmax) > 0)
