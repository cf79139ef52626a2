"""Host memory that one device fills: what was offloaded and waits there."""

from asap.prediction.step_model.activations import offloaded
from asap.prediction.step_model.device_parameters import owned_parameters
from asap.prediction.step_model.inputs import Number, StepInputs, select
from asap.prediction.step_model.memory import in_flight


def host_memory(inputs: StepInputs) -> Number:
    """Bytes: parameters, the optimizer's state, gradients where the host updates it, and the activations of all
    microbatches in flight."""
    work, layout, owned = inputs.workload, inputs.plan, owned_parameters(inputs)
    state = layout.host_optimizer * work.optimizer_bytes * owned.under_zero(inputs, 1)
    state = state + layout.host_parameters * work.parameter_bytes * owned.total
    gradients = work.gradient_bytes * owned.under_zero(inputs, 2)
    state = state + layout.host_optimizer * select(work.updates_on_host, gradients, 0.0)
    first, _ = in_flight(inputs)
    return state + first * inputs.layers_per_stage * offloaded(inputs)
