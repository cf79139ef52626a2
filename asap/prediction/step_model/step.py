"""Time of a whole step: compute, exposed communication, the pipeline bubble, the optimizer's update."""

from dataclasses import dataclass

import numpy as np

from asap.prediction.step_model.activations import activations, offloaded
from asap.prediction.step_model.communication import Communication, communication
from asap.prediction.step_model.compute import Compute, compute, launches
from asap.prediction.step_model.constants import Constants
from asap.prediction.step_model.device_parameters import (
    OwnedParameters,
    layer_parameters,
    owned_parameters,
    reductions,
)
from asap.prediction.step_model.inputs import Number, StepInputs, anywhere, select

STACK_PASSES = 2.0
"""HBM passes over what a layer keeps, to copy it into the stack of a loop over layers: it is read and written once. In
compiled programs for v5e, layers that keep everything move 1.3 (dense) and 4.4 times (experts) what they keep."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step by part; ``exposed`` ones add up to ``total``, and those done ``again``, of products
    (``matmul``), of ``attention`` and of the ``loss`` with its logits are within others. ``launches`` are those of a
    host's kernels, of which ``overhead`` has what outlasts the device."""

    compute: Number
    compute_again: Number
    hbm: Number
    hbm_again: Number
    matmul: Number
    attention: Number
    loss: Number
    overhead: Number
    launches: Number
    tensor: Number
    tensor_exposed: Number
    sequence: Number
    sequence_exposed: Number
    expert: Number
    expert_exposed: Number
    data: Number
    data_exposed: Number
    replica: Number
    replica_exposed: Number
    slices: Number
    slices_exposed: Number
    stage: Number
    stage_exposed: Number
    bubble: Number
    optimizer: Number
    transfer: Number
    transfer_exposed: Number
    total: Number


def predict_step(inputs: StepInputs, constants: Constants) -> StepTime:
    """Seconds of one training step. Virtual stages shorten the bubble by their number (arXiv:2104.04473, 2.2) where
    microbatches are as many as stages; with fewer, each further round waits for the first to come around."""
    layout = inputs.plan
    comp, comm = compute(inputs, constants), communication(inputs, constants)
    count = layout.microbatches
    stacked = _stacking(inputs, constants) + _dequantizing(inputs, constants)
    each = comp.layer_matmul + comp.layer_attention + comp.layer_hbm + stacked
    tensor_each, sequence_each, expert_each = _exposed_in_a_layer(inputs, constants, comp, comm, each)
    device = each + tensor_each + sequence_each + expert_each
    launched = launches(inputs, constants)
    apart = 1 - (inputs.workload.graphed_attention + inputs.workload.graphed_mlp) / 2  # kernels with gaps between them
    fixed = constants.layer_overhead * (3 + layout.recompute_layer) * apart
    outlasting = longer(launched.ahead, device) - device
    late = select(inputs.workload.blocks_launches, launched.ahead, outlasting) + launched.awaited
    whole = device + fixed + late
    layers, ends = _slowest_stage(inputs, whole, comp.head_matmul + comp.head_hbm)

    matmul = layers * (comp.layer_matmul + comp.layer_attention) + ends * comp.head_matmul
    hbm = layers * (comp.layer_hbm + stacked) + ends * comp.head_hbm
    busy = matmul + hbm
    cover = busy * (1 - inputs.workload.blocks_launches)
    tensor, tensor_exposed = layers * comm.tensor_layer, layers * tensor_each
    sequence, sequence_exposed = layers * comm.sequence_layer, layers * sequence_each
    expert, expert_exposed = layers * comm.expert_layer, layers * expert_each
    overhead = layers * (fixed + late) + constants.microbatch_overhead
    data_exposed = exposed(comm.gather_microbatch, cover, constants.gather_exposure, constants)
    stage_exposed = constants.stage_exposure * comm.stage_microbatch
    slowest = busy + overhead + tensor_exposed + sequence_exposed + expert_exposed + data_exposed + stage_exposed
    others = slowest - ends * (comp.head_matmul + comp.head_hbm) + (inputs.layers_per_stage - layers) * whole
    idle = layout.stages - 1 + (layout.pipeline_repeats - 1) * np.maximum(layout.stages - count, 0)
    bubble = idle * others / layout.pipeline_repeats
    backward = reductions(inputs) * cover * 2 / 3 * inputs.workload.overlaps_reduction
    replica_exposed = exposed(comm.replica_step, backward, constants.replica_exposure, constants)
    slices_exposed = exposed(comm.slice_step, backward, constants.replica_exposure, constants)
    owned = owned_parameters(inputs)
    update = _update(inputs, owned, constants)
    moved, waited = _copies_to_host(inputs, owned, count * busy)
    total = count * slowest + bubble + replica_exposed + slices_exposed + update + waited + constants.step_overhead
    return StepTime(
        compute=count * matmul,
        compute_again=count * layers * comp.layer_again,
        hbm=count * hbm,
        hbm_again=count * layers * comp.layer_hbm_again,
        matmul=count * (matmul - layers * comp.layer_attention),
        attention=count * layers * (comp.layer_attention + comp.layer_scores),
        loss=count * ends * (comp.head_matmul + comp.head_hbm),
        overhead=count * overhead + constants.step_overhead,
        launches=count * layers * (launched.ahead + launched.awaited),
        tensor=count * tensor,
        tensor_exposed=count * tensor_exposed,
        sequence=count * sequence,
        sequence_exposed=count * sequence_exposed,
        expert=count * expert,
        expert_exposed=count * expert_exposed,
        data=count * comm.gather_microbatch,
        data_exposed=count * data_exposed,
        replica=comm.replica_step,
        replica_exposed=replica_exposed,
        slices=comm.slice_step,
        slices_exposed=slices_exposed,
        stage=count * comm.stage_microbatch,
        stage_exposed=count * stage_exposed,
        bubble=bubble,
        optimizer=update,
        transfer=moved,
        transfer_exposed=waited,
        total=total,
    )


def _slowest_stage(inputs: StepInputs, layer: Number, head: Number) -> tuple[Number, Number]:
    """Layers of the stage that takes longest, and whether the head is on it: the last one, or one of the others."""
    full, last = inputs.layers_per_stage, inputs.layers_with_loss
    ends = last * layer + head >= full * layer
    return np.where(ends, last, full), np.where(ends, 1.0, 0.0)


def _exposed_in_a_layer(
    inputs: StepInputs, constants: Constants, comp: Compute, comm: Communication, busy: Number
) -> tuple[Number, Number, Number]:
    """Seconds of a layer in collectives of tensor, context and expert parallelism that nothing hides."""
    work, share = inputs.workload, constants.gather_exposure
    pieces = exposed(comm.tensor_layer, comp.layer_matmul, share, constants)
    around = exposed(comm.sequence_layer, comp.layer_attention, share, constants)
    beside = exposed(comm.expert_layer, busy, share, constants)
    return (
        select(work.overlaps_tensor, pieces, constants.tensor_exposure * comm.tensor_layer),
        select(work.rings_context, around, constants.tensor_exposure * comm.sequence_layer),
        select(work.overlaps_experts, beside, constants.expert_exposure * comm.expert_layer),
    )


def exposed(busy: Number, cover: Number, share: Number, constants: Constants) -> Number:
    """What overlap leaves of a collective: a share that never hides, and all that outlasts its cover."""
    hidden = np.minimum(np.maximum(1 - share, 0.0) * busy, constants.overlap_window * cover)
    return busy - hidden


def _stacking(inputs: StepInputs, constants: Constants) -> Number:
    """Seconds of a layer to copy what it keeps for the backward pass into the stack of all layers (jax.lax.scan), which
    lies in HBM or in host memory: copies to the host pass through HBM as well."""
    moved = STACK_PASSES * inputs.workload.scans_layers * (activations(inputs).kept + offloaded(inputs))
    return moved / (inputs.hardware.hbm_bandwidth * constants.memory_efficiency)


def _dequantizing(inputs: StepInputs, constants: Constants) -> Number:
    """Seconds of a layer to restore weights to 16 bits from those that are held, before the products of each pass."""
    if not anywhere(inputs.workload.dequantized_bytes):
        return 0.0
    passes = 2 + inputs.plan.recompute_layer
    moved = passes * inputs.workload.dequantized_bytes * layer_parameters(inputs)
    return moved / (inputs.hardware.hbm_bandwidth * constants.memory_efficiency)


def longer(first: Number, second: Number) -> Number:
    """The longer of two times, smoothly: the norm of order 4 (squares, which are fast)."""
    return np.sqrt(np.sqrt(np.square(np.square(first)) + np.square(np.square(second))))


def _update(inputs: StepInputs, owned: OwnedParameters, constants: Constants) -> Number:
    """The optimizer reads gradients and states and writes states and parameters once: bound by HBM, or by the host
    where its processors run it."""
    work, machine = inputs.workload, inputs.hardware
    each = work.gradient_bytes + 2 * work.optimizer_bytes + work.updated_bytes
    on_host = inputs.plan.host_optimizer * work.updates_on_host
    rate = select(on_host, machine.host_update, machine.hbm_bandwidth * constants.memory_efficiency)
    return each * owned.under_zero(inputs, 1) / rate


def _copies_to_host(inputs: StepInputs, owned: OwnedParameters, cover: Number) -> tuple[Number, Number]:
    """Seconds in copies to the host and back, and what of them nothing hides: all of what the update waits for, and
    what of weights and activations outlasts half the computation, the forward pass on the way out and the backward pass
    on the way back."""
    state, along = _state_copies(inputs, owned), _activation_copies(inputs) + _weight_copies(inputs, owned)
    return state + along, state + np.maximum(along - cover / 2, 0.0)


def _state_copies(inputs: StepInputs, owned: OwnedParameters) -> Number:
    """Where the host runs the optimizer, gradients go there and parameters come back; else parameters come in before
    the forward pass, the optimizer's state before the update, and both go back after."""
    work, layout = inputs.workload, inputs.plan
    sharded = layout.host_optimizer * owned.under_zero(inputs, 1)
    results = sharded * (work.gradient_bytes + work.updated_bytes)
    state = 2 * (sharded * work.optimizer_bytes + layout.host_parameters * work.parameter_bytes * owned.total)
    return select(work.updates_on_host, results, state) / inputs.hardware.host_bandwidth


def _weight_copies(inputs: StepInputs, owned: OwnedParameters) -> Number:
    """A device's own weights come in for the forward and for the backward pass of each microbatch, where the host holds
    them between steps."""
    work, layout = inputs.workload, inputs.plan
    weights = layout.host_parameters * work.updates_on_host * work.parameter_bytes * owned.total
    return 2 * layout.microbatches * weights / inputs.hardware.host_bandwidth


def _activation_copies(inputs: StepInputs) -> Number:
    """Out, while others come back: the link carries both at once."""
    moved = inputs.plan.microbatches * inputs.layers_per_stage * offloaded(inputs)
    return moved / inputs.hardware.host_bandwidth
