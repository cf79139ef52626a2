"""HBM of the fullest device, by part. Model state: ZeRO, arXiv:1910.02054, section 3."""

from dataclasses import dataclass, fields

import numpy as np

from asap.prediction.step_model.activations import activations
from asap.prediction.step_model.compute import ACTIVATION_BYTES
from asap.prediction.step_model.inputs import Number, StepInputs


@dataclass(frozen=True, slots=True)
class StepMemory:
    """Bytes of one device."""

    parameters: Number
    gradients: Number
    optimizer: Number
    activations: Number
    attention: Number
    temporaries: Number
    collectives: Number

    def reserved(self, scale: Number, reuse: Number) -> "StepMemory":
        """What the allocator reserves for it: all parts scaled, temporaries by ``reuse`` besides.

        What comes and goes leaves blocks that the next tensors do not fill (PyTorch, CUDA semantics).
        """
        parts = {field.name: getattr(self, field.name) * scale for field in fields(self)}
        return StepMemory(**parts | {"temporaries": parts["temporaries"] * reuse})

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


def layer_parameters(inputs: StepInputs) -> Number:
    """Parameters of one layer (mean over layers) on one device, before FSDP."""
    return _dense_layer(inputs) + _experts_layer(inputs)


def stage_parameters(inputs: StepInputs) -> Number:
    """Parameters of the fullest pipeline stage on one device, before FSDP."""
    return inputs.layers_per_stage * layer_parameters(inputs) + _embedding(inputs)


def parameters_per_device(inputs: StepInputs) -> Number:
    """Parameters that a device of the fullest pipeline stage owns after all sharding.

    MaxText's rules lay ``embed``, the width of every weight, over FSDP, context and expert axes (``logical_axis_rules``
    in its configs/base.yml); those of experts leave out the expert axis, over which the experts themselves lie.
    """
    layout, widely = inputs.plan, inputs.workload.weights_over_tokens > 0
    shards = layout.fsdp * np.where(widely, layout.seq, 1.0)
    dense = inputs.layers_per_stage * _dense_layer(inputs) + _embedding(inputs)
    experts = inputs.layers_per_stage * _experts_layer(inputs)
    return (dense / np.where(widely, layout.expert, 1.0) + experts) / shards


def _dense_layer(inputs: StepInputs) -> Number:
    model, moe_share = inputs.model, inputs.model.moe_share
    matrices = (model.up_projections + 1) * model.width
    dense = model.attention_parameters + matrices * model.mlp_width * (1 - moe_share)
    split = (dense + matrices * model.shared_mlp_width * moe_share) / inputs.plan.model
    repeated = 1 / inputs.key_value_parts - 1 / inputs.plan.model
    return split + model.width * model.key_value_width * repeated


def _experts_layer(inputs: StepInputs) -> Number:
    model, layout = inputs.model, inputs.plan
    matrices = (model.up_projections + 1) * model.width
    return model.moe_share * matrices * model.expert_mlp_width * model.experts / layout.expert / layout.model


def _embedding(inputs: StepInputs) -> Number:
    model, layout = inputs.model, inputs.plan
    return model.vocab * model.width * np.where(layout.stages > 1, 1.0, 2.0 - model.tied_embeddings) / layout.model


def memory(inputs: StepInputs) -> StepMemory:
    """What the fullest device holds at the peak of a step.

    In a pipeline that is the first stage, with the most microbatches in flight, or the last, with the logits. The
    logits are gone before a layer's backward pass begins.
    """
    work, layout = inputs.workload, inputs.plan
    owned = parameters_per_device(inputs)
    optimizer = owned * work.optimizer_bytes / np.where(work.zero_stage >= 1, layout.replicas, 1.0)
    gradients = owned * work.gradient_bytes / np.where(work.zero_stage >= 2, layout.replicas, 1.0)
    layers = inputs.layers_per_stage
    layer = activations(inputs)
    first, last = in_flight(inputs)
    at_start = first * layers * (layer.kept + layer.scores) + layer.working
    peak = np.maximum(layer.working, layer.logits)
    ends = last * layers * (layer.kept + layer.scores) + peak >= at_start
    flight = np.where(ends, last, first) * layers
    return StepMemory(
        parameters=owned * work.parameter_bytes,
        gradients=gradients,
        optimizer=optimizer * (1 - layout.host_optimizer),
        activations=flight * layer.kept,
        attention=flight * layer.scores,
        temporaries=np.where(ends, peak, layer.working),
        collectives=_gathered(inputs),
    )


def _gathered(inputs: StepInputs) -> Number:
    """Parameters brought together, and what is gathered or scattered meanwhile.

    PyTorch gathers a layer at once; XLA gathers each matrix where it is used, the largest are those of the MLP.
    """
    model = inputs.model
    layer = layer_parameters(inputs)
    unit = layer / np.where(inputs.workload.xla > 0, model.up_projections + 1, 1.0)
    return np.where(inputs.plan.fsdp > 1, 2 * unit * ACTIVATION_BYTES, 0.0)


def in_flight(inputs: StepInputs) -> tuple[Number, Number]:
    """Microbatches whose activations the first and the last stage keep: 1F1B, interleaved (arXiv:2104.04473, 2.2)."""
    layout = inputs.plan
    stages = layout.stages
    first = stages + np.where(layout.pipeline_repeats > 1, (stages - 1) / layout.pipeline_repeats, 0.0)
    last = stages - (stages - 1) / layout.pipeline_repeats
    return np.minimum(first, layout.microbatches), np.minimum(last, layout.microbatches)
