"""HBM of the fullest device, by part. Model state: ZeRO, arXiv:1910.02054, section 3."""

from dataclasses import dataclass, fields

import numpy as np

from asap.prediction.activations import activations
from asap.prediction.case import Case, Number
from asap.prediction.compute import ACTIVATION_BYTES


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of one device."""

    parameters: Number
    gradients: Number
    optimizer: Number
    activations: Number
    attention: Number
    temporaries: Number
    collectives: Number

    def reserved(self, scale: Number, reuse: Number) -> "Memory":
        """What the allocator reserves for it: all parts scaled, temporaries by ``reuse`` besides.

        What comes and goes leaves blocks that the next tensors do not fill (PyTorch, CUDA semantics).
        """
        parts = {field.name: getattr(self, field.name) * scale for field in fields(self)}
        return Memory(**parts | {"temporaries": parts["temporaries"] * reuse})

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


def layer_parameters(case: Case) -> Number:
    """Parameters of one layer (mean over layers) on one device, before data sharding."""
    model, layout = case.model, case.layout
    moe_share = model.moe_layers / model.layers
    matrices = (model.gates + 1) * model.width
    dense = model.attention_parameters + matrices * model.ff * (1 - moe_share)
    dense = dense + matrices * model.shared_ff * moe_share
    experts = moe_share * matrices * model.expert_ff * model.experts / layout.expert
    return (dense + experts) / layout.model


def parameters_per_device(case: Case) -> Number:
    """Parameters that a device of the fullest pipeline stage owns after all sharding."""
    model, layout = case.model, case.layout
    stages = layout.stage * layout.dcn_stage
    layers = np.ceil(model.layers / stages)
    embedding = model.vocab * model.width * np.where(stages > 1, 1.0, 2.0 - model.tied) / layout.model
    return (layers * layer_parameters(case) + embedding) / layout.data


def memory(case: Case) -> Memory:
    """What the fullest device holds at the peak of a step.

    In a pipeline that is the first stage, with the most microbatches in flight, or the last, with the logits. The
    logits are gone before a layer's backward pass begins.
    """
    work, layout = case.work, case.layout
    owned = parameters_per_device(case)
    shards = layout.replica * layout.dcn_replica * layout.dcn_data
    optimizer = owned * work.optimizer_bytes / np.where(work.zero_stage >= 1, shards, 1.0)
    gradients = owned * work.gradient_bytes / np.where(work.zero_stage >= 2, shards, 1.0)
    layers = np.ceil(case.model.layers / (layout.stage * layout.dcn_stage))
    layer = activations(case)
    first, last = in_flight(case)
    at_start = first * layers * (layer.kept + layer.scores) + layer.working
    peak = np.maximum(layer.working, layer.logits)
    ends = last * layers * (layer.kept + layer.scores) + peak >= at_start
    flight = np.where(ends, last, first) * layers
    return Memory(
        parameters=owned * work.parameter_bytes,
        gradients=gradients,
        optimizer=optimizer * (1 - layout.host_optimizer),
        activations=flight * layer.kept,
        attention=flight * layer.scores,
        temporaries=np.where(ends, peak, layer.working),
        collectives=_gathered(case),
    )


def _gathered(case: Case) -> Number:
    """Parameters brought together, and what is gathered or scattered meanwhile.

    PyTorch gathers a layer at once; XLA gathers each matrix where it is used, the largest are those of the MLP.
    """
    model = case.model
    layer = layer_parameters(case)
    unit = layer / np.where(case.work.compiled > 0, model.gates + 1, 1.0)
    return np.where(case.layout.data > 1, 2 * unit * ACTIVATION_BYTES, 0.0)


def in_flight(case: Case) -> tuple[Number, Number]:
    """Microbatches whose activations the first and the last stage keep: 1F1B, interleaved (arXiv:2104.04473, 2.2)."""
    layout = case.layout
    stages = layout.stage * layout.dcn_stage
    first = stages + np.where(layout.repeats > 1, (stages - 1) / layout.repeats, 0.0)
    last = stages - (stages - 1) / layout.repeats
    return np.minimum(first, layout.microbatches), np.minimum(last, layout.microbatches)
