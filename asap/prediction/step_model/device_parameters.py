"""Parameters that one device holds, by the axes that divide them."""

from dataclasses import dataclass

import numpy as np

from asap.prediction.step_model.inputs import Number, StepInputs, once


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
