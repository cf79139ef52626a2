"""What data parallelism sends: sharded parameters are gathered and their gradients scattered, copies reduce theirs."""

import numpy as np

from asap.prediction.step_model.collectives import (
    Channel,
    all_gather,
    channel,
    network,
    reduce_scatter,
    through_one_port,
)
from asap.prediction.step_model.compute import ACTIVATION_BYTES
from asap.prediction.step_model.constants import Constants
from asap.prediction.step_model.device_parameters import expert_parameters, owned_parameters, stage_parameters
from asap.prediction.step_model.inputs import Number, StepInputs, select


def gather_seconds(inputs: StepInputs, constants: Constants) -> Number:
    """Of one layer and microbatch, those of no expert from the expert axis as well, where they are sharded over it."""
    layer, widely = stage_parameters(inputs) / inputs.layers_per_stage, inputs.workload.weights_over_tokens > 0
    tokens = np.where(widely, inputs.plan.seq, 1.0)
    if not np.any(inputs.model.experts):
        return _gathers(inputs, constants, layer, tokens)
    experts = expert_parameters(inputs)
    over_tokens = select(inputs.workload.experts_over_seq, 1.0, tokens)
    routed = select(experts, _gathers(inputs, constants, experts, over_tokens), 0.0)
    return _gathers(inputs, constants, layer - experts, tokens * np.where(widely, inputs.plan.expert, 1.0)) + routed


def _gathers(inputs: StepInputs, constants: Constants, parameters: Number, beside: Number) -> Number:
    """Of so many parameters, sharded over FSDP and so many devices beside it. Over slices each device first gathers its
    own shard through their network."""
    shards = inputs.plan.data * beside
    ring = channel(inputs, constants, shards, _inner(inputs) / beside)
    if np.any(inputs.workload.gathers_through_one_port):
        ring = through_one_port(ring, inputs.workload.gathers_through_one_port)
    far = network(inputs, constants, inputs.plan.dcn_data)
    return (
        _gather(inputs, parameters, ring)
        + _gather(inputs, parameters / shards, far)
        - _saved_by_second_copy(inputs, constants, parameters, ring, beside)
    )


def _saved_by_second_copy(
    inputs: StepInputs, constants: Constants, parameters: Number, ring: Channel, beside: Number
) -> Number:
    """What the backward pass saves where it gathers from a second copy over fewer devices (arXiv:2306.10209, 3.2)."""
    second = inputs.workload.secondary_shards
    if not np.any(second):
        return 0.0
    near = channel(inputs, constants, np.minimum(np.maximum(second, 1.0), ring.members), _inner(inputs) / beside)
    size = ACTIVATION_BYTES * parameters
    return np.where(second > 0, all_gather(size, ring) - all_gather(size, near), 0.0)


def reduction_seconds(inputs: StepInputs, constants: Constants) -> tuple[Number, Number]:
    """Of one step, within a slice and over slices; those of no expert have copies along the expert axis as well."""
    layout = inputs.plan
    owned = owned_parameters(inputs)
    copies, dense_copies = inputs.expert_replicas / layout.dcn_replica, inputs.dense_replicas / layout.dcn_replica
    between = _inner(inputs) * layout.data * layout.replica
    near = _reduction(inputs, owned.dense, channel(inputs, constants, dense_copies, between / dense_copies))
    if np.any(inputs.model.experts):
        ring = channel(inputs, constants, copies, between / copies)
        near = near + select(inputs.model.experts, _reduction(inputs, owned.experts, ring), 0.0)
    return near, _reduction(inputs, owned.total, network(inputs, constants, layout.dcn_replica))


def _gather(inputs: StepInputs, parameters: Number, ring: Channel) -> Number:
    """FSDP of so many parameters: gathered forward and backward, and their gradients scattered, in the last microbatch
    or in each."""
    gathered = 2 * all_gather(ACTIVATION_BYTES * parameters, ring)
    scattered = reduce_scatter(inputs.workload.reduce_bytes * parameters, ring)
    return gathered + scattered / select(inputs.workload.accumulates_whole, inputs.plan.microbatches, 1.0)


def _reduction(inputs: StepInputs, owned: Number, ring: Channel) -> Number:
    """Gradients are scattered, and then either they are gathered or, after a sharded update, the parameters; each
    bucket takes its own turns of the ring."""
    work = inputs.workload
    size = work.reduce_bytes * owned
    buckets = np.maximum(np.ceil(size / work.reduction_bucket), 1)
    return reduce_scatter(size, ring) + all_gather(work.gather_bytes * owned, ring) + 2 * (buckets - 1) * ring.latency


def _inner(inputs: StepInputs) -> Number:
    """Devices of the axes that are faster than data parallelism."""
    return inputs.plan.model * inputs.plan.seq * inputs.plan.expert
