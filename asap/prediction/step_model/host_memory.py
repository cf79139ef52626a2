"""Host memory that one device fills: what was offloaded and waits there."""

import numpy as np

from asap.prediction.step_model.activations import offloaded
from asap.prediction.step_model.inputs import Number, StepInputs
from asap.prediction.step_model.memory import in_flight, parameters_per_device


def host_memory(inputs: StepInputs) -> Number:
    """Bytes: parameters, the optimizer's state, and the activations of all microbatches in flight."""
    work, layout, owned = inputs.workload, inputs.plan, parameters_per_device(inputs)
    shards = np.where(work.zero_stage >= 1, layout.replicas, 1.0)
    state = owned * (
        layout.host_optimizer * work.optimizer_bytes / shards + layout.host_parameters * work.parameter_bytes
    )
    first, _ = in_flight(inputs)
    return state + first * inputs.layers_per_stage * offloaded(inputs)
