"""What context parallelism sends in a layer: each device has a part of the tokens, attention needs all of them.

Keys and values are gathered (Llama 3, arXiv:2407.21783, section 3.3.2), or passed around a ring while attention works
on what is there (Ring Attention, arXiv:2310.01889), or all-to-alls give each device all tokens of a part of the heads
(DeepSpeed-Ulysses, arXiv:2309.14509, section 3.2).
"""

import re

import numpy as np

from asap.models.workload import ContextParallel, Workload
from asap.prediction.step_model.collectives import Channel, all_gather, all_to_all
from asap.prediction.step_model.compute import ACTIVATION_BYTES
from asap.prediction.step_model.inputs import Number, StepInputs, WorkloadInputs, select

_OWN: tuple[tuple[ContextParallel, str], ...] = (
    ("all_gather", r"maxtext|torchtitan"),
    ("ulysses", r"deepspeed"),
    ("ring", r"megatron|nemo|mcore"),
)
"""What a stack does unless it is told otherwise: MaxText's ``context_parallel_strategy``, torchtitan's
``context_parallel_rotate_method``, Megatron-Core's ``cp_comm_type``; DeepSpeed knows nothing else."""


def context_parallel_kind(workload: Workload) -> ContextParallel | None:
    """As the workload says, or as its stack does it; ``None`` where neither is known."""
    low = (workload.framework or "").casefold()
    return workload.context_parallel or next((kind for kind, pattern in _OWN if re.search(pattern, low)), None)


def collective_kind(work: WorkloadInputs) -> str:
    """The collective behind :func:`sequence_seconds`, of one workload."""
    if work.swaps_heads:
        return "all-to-all"
    return "collective-permute" if work.rings_context else "all-gather"


def sequence_seconds(inputs: StepInputs, ring: Channel) -> Number:
    """Of all passes over a layer: keys and values are brought together forward and backward, and their gradients taken
    back; heads are swapped and swapped back, forward, backward and where attention is computed again."""
    gathered = 3 * all_gather(_keys_and_values(inputs), ring)
    swaps = inputs.workload.swaps_heads
    if not np.any(swaps):
        return gathered
    passes = 2 + inputs.plan.recompute_attention
    swapped = all_to_all(_inputs_of_attention(inputs), ring, inputs.hardware.tpu)
    swapped = swapped + all_to_all(_output_of_attention(inputs), ring, inputs.hardware.tpu)
    return select(swaps, passes * swapped, gathered)


def _keys_and_values(inputs: StepInputs) -> Number:
    """Bytes of a whole sequence."""
    layout = inputs.plan
    return _of_own_tokens(inputs) * layout.seq * inputs.model.key_value_width / layout.model


def _inputs_of_attention(inputs: StepInputs) -> Number:
    """Bytes of one device's tokens; keys and values are sent to each device that has one of their queries' heads."""
    model, layout = inputs.model, inputs.plan
    copies = np.maximum(layout.seq * layout.model / model.kv_heads, 1.0)
    queries = model.qkv_width - model.key_value_width
    return _of_own_tokens(inputs) * (queries + copies * model.key_value_width) / layout.model


def _output_of_attention(inputs: StepInputs) -> Number:
    return _of_own_tokens(inputs) * inputs.model.out_width / inputs.plan.model


def _of_own_tokens(inputs: StepInputs) -> Number:
    """Bytes for each element of a token's width."""
    return ACTIVATION_BYTES * inputs.tokens_per_microbatch
