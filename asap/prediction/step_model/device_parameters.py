"""Parameters that one device holds, by the axes that divide them."""

from dataclasses import dataclass

import numpy as np

from asap.prediction.step_model.collectives import (
    Channel,
    all_gather,
    channel,
    network,
    reduce_scatter,
    through_few_ports,
)
from asap.prediction.step_model.compute import ACTIVATION_BYTES
from asap.prediction.step_model.constants import Constants
from asap.prediction.step_model.inputs import Number, StepInputs, anywhere, once, select


@once
def layer_parameters(inputs: StepInputs) -> Number:
    """Parameters of one layer (mean over layers) on one device, before FSDP."""
    return _dense_layer(inputs) + expert_parameters(inputs)


def stage_parameters(inputs: StepInputs) -> Number:
    """Parameters of the fullest pipeline stage on one device, before FSDP."""
    return inputs.layers_per_stage * layer_parameters(inputs) + embedding_parameters(inputs)


@dataclass(frozen=True, slots=True)
class OwnedParameters:
    """Parameters that a device of the fullest pipeline stage owns after all sharding: of no expert, of routed ones."""

    dense: Number
    experts: Number

    @property
    def total(self) -> Number:
        """Both."""
        return self.dense + self.experts

    def under_zero(self, inputs: StepInputs, stage: int) -> Number:
        """Those for which a device holds what ZeRO shards from this stage on, among all that have the same ones; for
        those of no expert the expert axis counts (Megatron-Core, ``parallel_state.py``, expert data parallelism)."""
        sharded = self.dense / inputs.dense_replicas + self.experts / inputs.expert_replicas
        return np.where(inputs.workload.zero_stage >= stage, sharded, self.total)


@once
def owned_parameters(inputs: StepInputs) -> OwnedParameters:
    """What the axes of the plan leave on a device.

    MaxText's rules lay ``embed``, the width of every weight, over FSDP, context and expert axes (``logical_axis_rules``
    in its configs/base.yml); those of experts leave out the expert axis, over which the experts themselves lie. So does
    PyTorch's FSDP (torchtitan, ``parallel_dims.py``).
    """
    dense_shards, expert_shards = _shards(inputs)
    dense = inputs.layers_per_stage * _dense_layer(inputs) + embedding_parameters(inputs)
    experts = inputs.layers_per_stage * expert_parameters(inputs)
    return OwnedParameters(dense / dense_shards, experts / expert_shards)


def largest_tensor(inputs: StepInputs) -> Number:
    """Parameters of the largest tensor that a device owns: the embedding, or one matrix of an MLP, of attention or of
    experts, stacked over the layers of one place in the block that a scan repeats."""
    model, degree = inputs.model, inputs.plan.model
    stacked = model.width * inputs.layers_per_stage / inputs.workload.layers_together
    dense_width = np.maximum(np.where(model.moe_share < 1, model.mlp_width, model.shared_mlp_width), model.out_width)
    experts_width = model.expert_mlp_width * model.experts / inputs.expert_parts / inputs.expert_devices
    dense_shards, expert_shards = _shards(inputs)
    dense = np.maximum(stacked * dense_width, model.width * model.vocab) / degree
    return np.maximum(dense / dense_shards, stacked * experts_width / expert_shards)


def _shards(inputs: StepInputs) -> tuple[Number, Number]:
    """Devices over which the axes of the batch divide a weight of no expert, and one of experts."""
    layout, widely = inputs.plan, inputs.workload.weights_over_tokens > 0
    shards = layout.fsdp * np.where(widely, layout.seq, 1.0)
    over_seq = widely & (inputs.workload.experts_over_seq > 0)
    return shards * np.where(widely, layout.expert, 1.0), shards / np.where(over_seq, layout.seq, 1.0)


def _dense_layer(inputs: StepInputs) -> Number:
    model, moe_share = inputs.model, inputs.model.moe_share
    matrices = (model.up_projections + 1) * model.width
    dense = model.attention_parameters + matrices * model.mlp_width * (1 - moe_share)
    split = (dense + matrices * model.shared_mlp_width * moe_share) / inputs.plan.model
    repeated = 1 / inputs.key_value_parts - 1 / inputs.plan.model
    return split + model.width * model.key_value_width * repeated


def expert_parameters(inputs: StepInputs) -> Number:
    """Of the routed experts of one layer (mean over layers) on one device, before FSDP."""
    model = inputs.model
    matrices = (model.up_projections + 1) * model.width
    each = matrices * model.expert_mlp_width / inputs.expert_parts
    return model.moe_share * each * model.experts / inputs.expert_devices


@once
def embedding_parameters(inputs: StepInputs) -> Number:
    """Of what lies outside the layers, on one device, before FSDP: one matrix in a pipeline, else two unless tied."""
    model, layout = inputs.model, inputs.plan
    return model.vocab * model.width * np.where(layout.stages > 1, 1.0, 2.0 - model.tied_embeddings) / layout.model


def gather_seconds(inputs: StepInputs, constants: Constants) -> Number:
    """Of one layer and microbatch, those of no expert from the expert axis as well, where they are sharded over it."""
    layer, widely = stage_parameters(inputs) / inputs.layers_per_stage, inputs.workload.weights_over_tokens > 0
    tokens = np.where(widely, inputs.plan.seq, 1.0)
    if not anywhere(inputs.model.experts):
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
    if anywhere(inputs.workload.gathers_through_few_ports):
        port = inputs.hardware.network_port * constants.network_efficiency
        ring = through_few_ports(ring, inputs.workload.gathers_through_few_ports, port)
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
    if not anywhere(second):
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
    if anywhere(inputs.model.experts):
        ring = channel(inputs, constants, copies, between / copies)
        near = near + select(inputs.model.experts, _reduction(inputs, owned.experts, ring), 0.0)
    return near, _reduction(inputs, owned.total, network(inputs, constants, layout.dcn_replica))


def _gather(inputs: StepInputs, parameters: Number, ring: Channel) -> Number:
    """FSDP of so many parameters: gathered forward and backward, and their gradients scattered, in the last microbatch
    or in each."""
    held = np.minimum(inputs.workload.parameter_bytes, ACTIVATION_BYTES)
    gathered = 2 * all_gather(held * parameters, ring)
    scattered = reduce_scatter(inputs.workload.reduce_bytes * parameters, ring)
    return gathered + scattered / select(inputs.workload.accumulates_whole, inputs.plan.microbatches, 1.0)


def _reduction(inputs: StepInputs, owned: Number, ring: Channel) -> Number:
    """Gradients are scattered, and then either they are gathered or, after a sharded update, the parameters; each
    bucket takes its own turns of the ring."""
    work = inputs.workload
    size = work.reduce_bytes * owned
    buckets = np.maximum(np.ceil(size / work.reduction_bucket), 1)
    once = reduce_scatter(size, ring) + (buckets - 1) * ring.latency
    gathered = all_gather(work.gather_bytes * owned, ring) + (buckets - 1) * ring.latency
    return reductions(inputs) * once + gathered


def reductions(inputs: StepInputs) -> Number:
    """Of gradients over replicas in a step: one, or one for each microbatch."""
    sharded = inputs.workload.reduces_each * np.where(inputs.workload.zero_stage >= 2, 1.0, 0.0)
    return select(sharded, inputs.plan.microbatches, 1.0)


def _inner(inputs: StepInputs) -> Number:
    """Devices of the axes that are faster than data parallelism."""
    return inputs.plan.model * inputs.plan.seq * inputs.plan.expert
