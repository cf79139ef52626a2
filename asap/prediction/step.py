"""The step, put together: compute, what communication adds to it, the pipeline bubble, the update."""

from dataclasses import dataclass

import numpy as np

from asap.prediction.case import Case, Number
from asap.prediction.communication import communication
from asap.prediction.compute import compute
from asap.prediction.constants import Constants
from asap.prediction.memory import parameters_per_device


@dataclass(frozen=True, slots=True)
class Step:
    """Seconds of one step by part; ``exposed`` ones add up to ``total``."""

    compute: Number
    traffic: Number
    overhead: Number
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
    total: Number


def step(case: Case, constants: Constants) -> Step:
    """Time of one training step of each case."""
    layout = case.layout
    chip, wire = compute(case, constants), communication(case, constants)
    stages = layout.stage * layout.dcn_stage
    layers = np.ceil(case.model.layers / stages)
    count = layout.microbatches

    matmul = layers * (chip.layer_matmul + chip.layer_attention) + chip.head_matmul
    traffic = layers * chip.layer_traffic + chip.head_traffic
    tensor = layers * wire.tensor_layer
    sequence = layers * wire.sequence_layer
    expert = layers * wire.expert_layer
    busy = matmul + traffic
    tensor_exposed = constants.tensor_exposure * tensor
    sequence_exposed = constants.tensor_exposure * sequence
    expert_exposed = constants.expert_exposure * expert
    device = chip.layer_matmul + chip.layer_attention + chip.layer_traffic
    device = device + (tensor_exposed + sequence_exposed + expert_exposed) / layers
    overhead = layers * _overhead(case, constants, device) + constants.microbatch_overhead
    data_exposed = exposed(wire.gather_microbatch, busy, constants.gather_exposure, constants)
    stage_exposed = constants.stage_exposure * wire.stage_microbatch
    slowest = busy + overhead + tensor_exposed + sequence_exposed + expert_exposed + data_exposed + stage_exposed
    head = chip.head_matmul + chip.head_traffic
    bubble = (stages - 1) * (slowest - head) / layout.repeats

    backward = busy * 2 / 3 * case.work.overlaps_reduction
    replica_exposed = exposed(wire.replica_step, backward, constants.replica_exposure, constants)
    slices_exposed = exposed(wire.slice_step, backward, constants.replica_exposure, constants)
    update = _update(case, constants)
    total = count * slowest + bubble + replica_exposed + slices_exposed + update + constants.step_overhead
    return Step(
        compute=count * matmul,
        traffic=count * traffic,
        overhead=count * overhead + constants.step_overhead,
        tensor=count * tensor,
        tensor_exposed=count * tensor_exposed,
        sequence=count * sequence,
        sequence_exposed=count * sequence_exposed,
        expert=count * expert,
        expert_exposed=count * expert_exposed,
        data=count * wire.gather_microbatch,
        data_exposed=count * data_exposed,
        replica=wire.replica_step,
        replica_exposed=replica_exposed,
        slices=wire.slice_step,
        slices_exposed=slices_exposed,
        stage=count * wire.stage_microbatch,
        stage_exposed=count * stage_exposed,
        bubble=bubble,
        optimizer=update,
        total=total,
    )


def exposed(busy: Number, cover: Number, share: Number, constants: Constants) -> Number:
    """What overlap leaves of a collective: a share that never hides, and all that outlasts its cover."""
    hidden = np.minimum(np.maximum(1 - share, 0.0) * busy, constants.overlap_window * cover)
    return busy - hidden


def _overhead(case: Case, constants: Constants, device: Number) -> Number:
    """Launches of a layer: a fixed cost for each pass, and what the host's launching outlasts the device by.

    Small models are launch-bound: the device waits for the host (PyTorch CUDA semantics, asynchronous execution).
    """
    layout = case.layout
    passes = 3 + np.maximum(layout.again_mlp, np.maximum(layout.again_qkv, layout.again_out))
    moe_share = case.model.moe_layers / case.model.layers
    launch = constants.kernel_floor * (1 - moe_share) + constants.expert_floor * moe_share
    launch = launch + constants.collective_floor * (layout.model > 1)
    launch = np.asarray(launch * passes * (1 - case.machine.tpu), dtype=np.float64)
    return constants.layer_overhead * passes + _longer(launch, device) - device


def _longer(first: Number, second: Number) -> Number:
    """The longer of two times, smoothly: the norm of order 4 (squares, which are fast)."""
    return np.sqrt(np.sqrt(np.square(np.square(first)) + np.square(np.square(second))))


def _update(case: Case, constants: Constants) -> Number:
    """The optimizer reads gradients and states and writes states and parameters once: bound by HBM."""
    work, layout = case.work, case.layout
    shards = layout.replica * layout.dcn_replica * layout.dcn_data
    owned = parameters_per_device(case) / np.where(work.zero_stage >= 1, shards, 1.0)
    moved = owned * (work.gradient_bytes + 2 * work.optimizer_bytes + work.parameter_bytes)
    return moved / (case.machine.hbm_bandwidth * constants.memory_efficiency)
