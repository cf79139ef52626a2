"""What one step sends: the collectives of each mesh axis, and how much of them compute does not hide.

Sizes follow "How to Scale Your Model", chapter 5, and Megatron-LM (arXiv:2104.04473, section 3; arXiv:2205.05198).
"""

from dataclasses import dataclass

import numpy as np

from asap.prediction.case import Case, Number
from asap.prediction.collectives import (
    Channel,
    all_gather,
    all_reduce,
    all_to_all,
    channel,
    network,
    reduce_scatter,
    send,
)
from asap.prediction.compute import ACTIVATION_BYTES, tokens_per_microbatch
from asap.prediction.constants import Constants
from asap.prediction.memory import parameters_per_device


@dataclass(frozen=True, slots=True)
class Traffic:
    """Seconds of communication: in one layer of one microbatch, in one microbatch, and at the end of the step."""

    tensor_layer: Number
    sequence_layer: Number
    expert_layer: Number
    gather_microbatch: Number
    stage_microbatch: Number
    replica_step: Number
    slice_step: Number


def communication(case: Case, constants: Constants) -> Traffic:
    """Busy seconds of the collectives of one device.

    Sharded parameters are gathered layer by layer, forward and backward, and their gradients scattered likewise.
    Tokens go to their experts and back, forward, backward, and once more where the MLP is computed again.
    Pipeline sends are split over the tensor axis (arXiv:2104.04473, section 4.1).
    """
    layout, machine = case.layout, case.machine
    model_ring = channel(case, constants, layout.model, 1.0)
    seq_ring = channel(case, constants, layout.seq, layout.model)
    expert_ring = channel(case, constants, layout.expert, layout.model * layout.seq)
    inner = layout.model * layout.seq * layout.expert
    free_axes = np.maximum(machine.torus_axes - (layout.model > 1) - (layout.seq > 1) - (layout.expert > 1), 1.0)
    data_ring = channel(case, constants, layout.data, inner, free_axes)
    replica_ring = channel(case, constants, layout.replica, inner * layout.data, free_axes)
    stage_ring = channel(case, constants, layout.stage, inner * layout.data * layout.replica)
    slices = network(case, constants, layout.dcn_replica * layout.dcn_data)

    activation = ACTIVATION_BYTES * tokens_per_microbatch(case) * case.model.width
    owned, reduced = parameters_per_device(case), case.work.reduced_bytes
    layers = np.ceil(case.model.layers / (layout.stage * layout.dcn_stage))
    whole_layer = owned * layout.data / layers
    gather = 2 * all_gather(ACTIVATION_BYTES * whole_layer, data_ring) + reduce_scatter(
        reduced * whole_layer, data_ring
    )
    return Traffic(
        tensor_layer=_tensor_passes(case) * all_reduce(activation, model_ring),
        sequence_layer=3 * all_gather(_keys_and_values(case), seq_ring),
        expert_layer=_moe_share(case)
        * (4 + 2 * layout.again_mlp)
        * all_to_all(_routed(case, activation), expert_ring, machine.tpu),
        gather_microbatch=layers * gather,
        stage_microbatch=2 * layout.repeats * send(activation / layout.model, stage_ring),
        replica_step=_reduction(case, owned, replica_ring),
        slice_step=_reduction(case, owned, slices),
    )


def _reduction(case: Case, owned: Number, ring: Channel) -> Number:
    """Gradients are scattered, and then either they are gathered or, after a sharded update, the parameters."""
    work = case.work
    return reduce_scatter(work.reduced_bytes * owned, ring) + all_gather(work.gathered_bytes * owned, ring)


def _tensor_passes(case: Case) -> Number:
    """All-reduces of a layer, each a gather and a scatter: one a block forward and backward, and what is done again.

    XLA reduces again only what attention writes for an MLP after it; of a residual stream that is split over the tensor
    axis it gathers each norm again (docs/verify.md). Who computes a layer again as a whole reduces all of it, and who
    does not keep what sequence parallelism gathered gathers it once more (arXiv:2205.05198, section 4.2.2).
    """
    work, layout, blocks = case.work, case.layout, case.model.blocks
    between = (blocks - 1) * layout.again_out
    compiled = np.where(work.sequence_parallel > 0, (blocks + between) / 2, between)
    regathered = np.where(work.sequence_parallel > 0, work.gathers_again, 0.0)
    whole = blocks * (layout.again_out + layout.again_mlp + regathered) / 2
    return 2 * blocks + np.where(work.compiled > 0, compiled, whole)


def _keys_and_values(case: Case) -> Number:
    """Bytes of a sequence's keys and values that context parallelism brings together in a layer."""
    model, layout = case.model, case.layout
    return ACTIVATION_BYTES * tokens_per_microbatch(case) * layout.seq * model.key_value_width / layout.model


def _routed(case: Case, activation: Number) -> Number:
    return activation * np.maximum(case.model.experts_per_token, 1)


def _moe_share(case: Case) -> Number:
    return case.model.moe_layers / case.model.layers
