"""HBM of the fullest device, by part. Model state: ZeRO, arXiv:1910.02054, section 3."""

from dataclasses import dataclass, fields, replace

import numpy as np

from asap.prediction.step_model.activations import activations, offloaded
from asap.prediction.step_model.compute import ACTIVATION_BYTES
from asap.prediction.step_model.device_parameters import layer_parameters, owned_parameters, stage_parameters
from asap.prediction.step_model.inputs import Number, StepInputs, anywhere, select
from asap.prediction.step_model.tpu_memory import TpuBuffers, block_share, load_tpu_buffers, tpu_peak

HOST_ALLOCATED = 1.5
"""Host memory over PyTorch's states there, in pinned blocks of powers of two: DeepSpeed's ``additional_buffer_factor``.
LLaMA 33B takes 750 to 800 GB, 521 of them states (deepspeedai/DeepSpeed#3448)."""


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
    allocator: Number = 0.0

    def reserved(self, scale: Number, reuse: Number) -> "StepMemory":
        """What the allocator reserves for it: ``scale`` times all parts, and ``reuse`` times that of temporaries.

        What comes and goes leaves blocks that the next tensors do not fill (PyTorch, CUDA semantics).
        """
        return replace(self, allocator=self.total * (scale - 1) + self.temporaries * scale * (reuse - 1))

    @property
    def total(self) -> Number:
        """All parts together."""
        return sum(getattr(self, field.name) for field in fields(self))


def memory(inputs: StepInputs, buffers: TpuBuffers | None = None) -> StepMemory:
    """What the fullest device holds at the peak of a step.

    Args:
        inputs: the step.
        buffers: what XLA holds beside the state and what is kept; by default as it was fitted.
    """
    tpu, buffers = inputs.hardware.tpu > 0, buffers or load_tpu_buffers()
    if not anywhere(inputs.hardware.tpu):
        return _allocated(inputs, buffers)
    planned = _planned(inputs, buffers)
    if np.all(tpu):
        return planned
    allocated = _allocated(inputs, buffers)
    names = [field.name for field in fields(StepMemory)]
    return StepMemory(**{name: np.where(tpu, getattr(planned, name), getattr(allocated, name)) for name in names})


def _planned(inputs: StepInputs, buffers: TpuBuffers) -> StepMemory:
    """On a TPU, as its compiler plans it: at the phase of the step that needs most."""
    work, owned = inputs.workload, owned_parameters(inputs)
    state = owned.under_zero(inputs, 1) * work.optimizer_bytes
    offloaded = state * inputs.plan.host_optimizer
    peak = tpu_peak(inputs, buffers, owned.total, offloaded, in_flight(inputs))
    return StepMemory(
        parameters=owned.total * work.parameter_bytes,
        gradients=peak.gradients,
        optimizer=state - offloaded + peak.moments,
        activations=peak.activations,
        attention=peak.attention,
        temporaries=peak.temporaries,
        collectives=peak.collectives,
    )


def _allocated(inputs: StepInputs, buffers: TpuBuffers) -> StepMemory:
    """On a GPU, as it is allocated while the step runs.

    The fullest device of a pipeline is of the first stage, with the most microbatches in flight, or of the last, with
    the logits. The logits are gone before a layer's backward pass begins.
    """
    work, layout = inputs.workload, inputs.plan
    owned = owned_parameters(inputs)
    optimizer = owned.under_zero(inputs, 1) * (work.optimizer_bytes - work.paged_bytes)
    gradients = owned.under_zero(inputs, 2) * work.gradient_bytes
    layers = inputs.layers_per_stage
    layer = activations(inputs)
    working = layer.working + block_share(inputs, buffers) * layer.of_block
    first, last = in_flight(inputs)
    at_start = first * layers * (layer.kept + layer.scores) + working
    peak = np.maximum(working, layer.logits)
    ends = last * layers * (layer.kept + layer.scores) + peak >= at_start
    flight = np.where(ends, last, first) * layers
    held = work.updates_on_host > 0
    return StepMemory(
        parameters=owned.total * work.parameter_bytes * np.where(held, 1 - layout.host_parameters, 1.0)
        + _second_copy(inputs),
        gradients=gradients * np.where(held, 1 - layout.host_optimizer, 1.0)
        + _accumulated_whole(inputs)
        + _microbatch_bytes(inputs, gradients),
        optimizer=optimizer * (1 - layout.host_optimizer),
        activations=flight * layer.kept,
        attention=flight * layer.scores,
        temporaries=np.where(ends, peak, working),
        collectives=_gathered(inputs) + _buffered(inputs),
    )


def _buffered(inputs: StepInputs) -> Number:
    """Gradients that wait to be reduced over devices that share them, or over replicas; never more than all."""
    shared = inputs.plan.fsdp * inputs.replicas > 1
    every = inputs.workload.trained * ACTIVATION_BYTES * stage_parameters(inputs)
    return np.where(shared, np.minimum(inputs.workload.reduction_buffers, every), 0.0)


def _second_copy(inputs: StepInputs) -> Number:
    """Parameters in 16 bits over fewer devices than those that shard them (arXiv:2306.10209, section 3.2)."""
    second = np.minimum(np.maximum(inputs.workload.secondary_shards, 1.0), inputs.plan.fsdp)
    kept = (inputs.workload.secondary_shards > 0) & (inputs.plan.fsdp > second)
    return np.where(kept, ACTIVATION_BYTES * stage_parameters(inputs) / second, 0.0)


def _accumulated_whole(inputs: StepInputs) -> Number:
    """Gradients that FSDP keeps from microbatch to microbatch before it scatters them."""
    layout = inputs.plan
    kept = (inputs.workload.accumulates_whole > 0) & (layout.microbatches > 1) & (layout.fsdp > 1)
    return np.where(kept, inputs.workload.trained * ACTIVATION_BYTES * stage_parameters(inputs), 0.0)


def _microbatch_bytes(inputs: StepInputs, gradients: Number) -> Number:
    """What a loop over microbatches holds where XLA compiles it: a microbatch's gradients beside their sum, and the
    parameters cast for the products once, before the loop. On an H100 the two runs of docs/optimize.md are
    predicted within 3 % with that.
    """
    loops = (inputs.workload.xla > 0) & (inputs.plan.microbatches > 1) & (inputs.plan.stages == 1)
    return np.where(loops, gradients + ACTIVATION_BYTES * owned_parameters(inputs).total, 0.0)


def _gathered(inputs: StepInputs) -> Number:
    """Parameters brought together, and what is gathered or scattered meanwhile.

    PyTorch gathers a layer at once; XLA gathers each matrix where it is used, the largest are those of the MLP.
    """
    unit = layer_parameters(inputs) / select(inputs.workload.xla, inputs.model.up_projections + 1, 1.0)
    return np.where(inputs.plan.fsdp > 1, 2 * unit * ACTIVATION_BYTES, 0.0)


def in_flight(inputs: StepInputs) -> tuple[Number, Number]:
    """Microbatches whose activations the first and the last stage keep.

    By the interleaved 1F1B schedule (arXiv:2104.04473, section 2.2). XLA compiles a loop over all iterations of a
    pipeline, GPipe's, and keeps those in which a stage has nothing to do as well.
    """
    layout = inputs.plan
    stages = layout.stages
    first = stages + np.where(layout.pipeline_repeats > 1, (stages - 1) / layout.pipeline_repeats, 0.0)
    last = stages - (stages - 1) / layout.pipeline_repeats
    iterations = layout.microbatches + (stages - 1) / layout.pipeline_repeats
    most = np.minimum(first, layout.microbatches), np.minimum(last, layout.microbatches)
    if not anywhere(inputs.workload.xla) or np.all(stages == 1):
        return most
    looped = (inputs.workload.xla > 0) & (stages > 1)
    return np.where(looped, iterations, most[0]), np.where(looped, iterations, most[1])


def host_memory(inputs: StepInputs) -> Number:
    """Bytes: parameters, the optimizer's state, gradients where the host updates it, as they are allocated there, and
    the activations of all microbatches in flight."""
    work, layout, owned = inputs.workload, inputs.plan, owned_parameters(inputs)
    sharded, (first, _) = owned.under_zero(inputs, 1), in_flight(inputs)
    gradients = select(work.updates_on_host, work.gradient_bytes * owned.under_zero(inputs, 2), 0.0)
    state = layout.host_optimizer * ((work.optimizer_bytes - work.paged_bytes) * sharded + gradients)
    state = state + layout.host_parameters * work.parameter_bytes * owned.total
    state = state * select(work.updates_on_host, HOST_ALLOCATED, 1.0) + work.paged_bytes * sharded
    return state + first * inputs.layers_per_stage * offloaded(inputs)
