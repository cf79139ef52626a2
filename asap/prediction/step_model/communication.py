"""What one step sends: the collectives of each mesh axis, and how much of them compute does not hide.

Sizes follow "How to Scale Your Model", chapter 5, and Megatron-LM (arXiv:2104.04473, section 3; arXiv:2205.05198).
"""

import re
from dataclasses import dataclass

import numpy as np

from asap.models.workload import ContextParallel, Workload
from asap.prediction.step_model.collectives import Channel, all_gather, all_reduce, all_to_all, channel, send
from asap.prediction.step_model.compute import ACTIVATION_BYTES
from asap.prediction.step_model.constants import Constants
from asap.prediction.step_model.device_parameters import gather_seconds, reduction_seconds
from asap.prediction.step_model.inputs import Number, StepInputs, WorkloadInputs, anywhere, select

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
    layout = inputs.plan
    keys_and_values = _own_tokens(inputs) * layout.seq * inputs.model.key_value_width / layout.model
    gathered = 3 * all_gather(keys_and_values, ring)
    swaps = inputs.workload.swaps_heads
    if not anywhere(swaps):
        return gathered
    passes = 2 + inputs.plan.recompute_attention
    swapped = all_to_all(_inputs_of_attention(inputs), ring, inputs.hardware.tpu)
    swapped = swapped + all_to_all(
        _own_tokens(inputs) * inputs.model.out_width / inputs.plan.model, ring, inputs.hardware.tpu
    )
    return select(swaps, passes * swapped, gathered)


def _inputs_of_attention(inputs: StepInputs) -> Number:
    """Bytes of one device's tokens; keys and values are sent to each device that has one of their queries' heads."""
    model, layout = inputs.model, inputs.plan
    copies = np.maximum(layout.seq * layout.model / model.kv_heads, 1.0)
    queries = model.qkv_width - model.key_value_width
    return _own_tokens(inputs) * (queries + copies * model.key_value_width) / layout.model


def _own_tokens(inputs: StepInputs) -> Number:
    """Bytes for each element of a token's width."""
    return ACTIVATION_BYTES * inputs.tokens_per_microbatch


@dataclass(frozen=True, slots=True)
class Communication:
    """Seconds of communication: in one layer of one microbatch, in one microbatch, and at the end of the step."""

    tensor_layer: Number
    sequence_layer: Number
    expert_layer: Number
    gather_microbatch: Number
    stage_microbatch: Number
    replica_step: Number
    slice_step: Number


def communication(inputs: StepInputs, constants: Constants) -> Communication:
    """Busy seconds of the collectives of one device.

    Tokens go to their experts and back, forward, backward, and once more where the MLP is computed again.
    Pipeline sends are split over the tensor axis (arXiv:2104.04473, section 4.1).
    """
    layout = inputs.plan
    model_ring = channel(inputs, constants, layout.model, 1.0)
    seq_ring = channel(inputs, constants, layout.seq, layout.model)
    folded = inputs.expert_devices / layout.expert
    expert_ring = channel(inputs, constants, inputs.expert_devices, layout.model * layout.seq / folded)
    within_a_stage = layout.model * layout.seq * layout.expert * layout.data * layout.replica
    stage_ring = channel(inputs, constants, layout.stage, within_a_stage)
    activation = ACTIVATION_BYTES * inputs.tokens_per_microbatch * inputs.model.width
    replica_step, slice_step = reduction_seconds(inputs, constants)
    return Communication(
        tensor_layer=_tensor_passes(inputs) * all_reduce(activation, model_ring),
        sequence_layer=sequence_seconds(inputs, seq_ring),
        expert_layer=inputs.model.moe_share
        * (4 + 2 * layout.recompute_mlp)
        * _dispatch(inputs, activation, expert_ring),
        gather_microbatch=inputs.layers_per_stage * gather_seconds(inputs, constants),
        stage_microbatch=2 * layout.pipeline_repeats * send(activation / layout.model, stage_ring),
        replica_step=replica_step,
        slice_step=slice_step,
    )


def _tensor_passes(inputs: StepInputs) -> Number:
    """All-reduces of a layer, each a gather and a scatter: one a block forward and backward, and what is done again.

    XLA reduces again only what attention writes for an MLP after it; of a residual stream that is split over the tensor
    axis it gathers each norm again (docs/verify.md). Who computes a layer again as a whole reduces all of it, and who
    does not keep what sequence parallelism gathered gathers it once more (arXiv:2205.05198, section 4.2.2).
    """
    work, layout = inputs.workload, inputs.plan
    blocks, copies = _reduced_blocks(inputs), _reduced_copies(inputs)
    between = np.maximum(blocks - 1, 0.0) * layout.recompute_out
    xla = select(work.sequence_parallel, (blocks + between) / 2, between)
    regathered = select(work.sequence_parallel, work.regathers_activations, 0.0)
    whole = (blocks + copies) * (layout.recompute_out + layout.recompute_mlp + regathered) / 2
    return 2 * (blocks + copies) + select(work.xla, xla, whole)


def _reduced_blocks(inputs: StepInputs) -> Number:
    """Blocks of a layer that the tensor axis splits, mean over layers: not experts that lie whole over it, to which
    all-to-alls bring the tokens, unless shared experts beside them are split."""
    model, whole = inputs.model, inputs.workload.experts_over_model > 0
    return model.sequential_blocks - np.where(whole & (model.shared_mlp_width == 0), model.moe_share, 0.0)


def _reduced_copies(inputs: StepInputs) -> Number:
    """Activations beyond one that a layer reduces where the tensor axis splits its experts: each writes one for every
    token it is sent, and they are reduced before a token's are added up (MaxText, ``layers/moe.py``; Megatron Core,
    ``moe/token_dispatcher.py``)."""
    split = inputs.workload.experts_over_model == 0
    return np.where(split, inputs.model.moe_share * np.maximum(inputs.computed_experts - 1, 0.0), 0.0)


def _dispatch(inputs: StepInputs, activation: Number, ring: Channel) -> Number:
    """Tokens to their experts, or back from them: an all-to-all, or all of them to each device (Megatron Core,
    ``MoEAllGatherTokenDispatcher``), where what comes back is reduced and scattered."""
    sent = all_to_all(_routed(inputs, activation), ring, inputs.hardware.tpu, _crossing(inputs, ring))
    if not anywhere(inputs.workload.gathers_tokens):
        return sent
    whole = ring.members * activation / _token_parts(inputs)
    return np.where(inputs.workload.gathers_tokens > 0, all_gather(whole, ring), sent)


def _token_parts(inputs: StepInputs) -> Number:
    """Devices over which tokens are split that lie on each other: with sequence parallelism each tensor rank has its
    own (Megatron Core, token dispatchers); XLA's tensor ranks hold the same ones."""
    work = inputs.workload
    return np.where((work.sequence_parallel > 0) & (work.xla == 0), inputs.plan.model, 1.0)


def _routed(inputs: StepInputs, activation: Number) -> Number:
    """Bytes that a device sends to experts."""
    return activation / _token_parts(inputs) * np.maximum(inputs.computed_experts, 1)


def _crossing(inputs: StepInputs, ring: Channel) -> Number:
    """Share of the copies of a token for other domains that cross the network, where each of the N domains gets one and
    forwards it: N (1 - (1 - 1/N)^k) / k of k copies to experts chosen evenly (DeepSeek-V3, arXiv:2412.19437, 3.2.2)."""
    domains, copies = ring.members / ring.inside, np.maximum(inputs.model.experts_per_token, 1)
    once = domains * (1 - (1 - 1 / domains) ** copies) / copies
    return select(inputs.workload.forwards_tokens, once, 1.0)
