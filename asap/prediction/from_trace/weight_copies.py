"""Copies of weights that XLA makes on a CPU: every device lays out each weight, gathered over FSDP, for its product."""

import numpy as np

from asap.prediction.step_model.constants import Constants
from asap.prediction.step_model.device_parameters import layer_parameters
from asap.prediction.step_model.inputs import StepInputs

COPY_PASSES = 2.0
"""The least that a copy takes: each weight of a layer is read and written. In programs that jax 0.10 compiled for two
small decoders under seven meshes, slices, copies and transposes of weights move 3.7 to 6.6 times what is gathered, some
of it in cache; 2 to 4 did about as well on five decoders, between whose meshes it was chosen."""


def weight_copies(inputs: StepInputs, constants: Constants) -> float:
    """Seconds of one device in one step, in which it runs each layer forward and backward."""
    moved = COPY_PASSES * inputs.workload.parameter_bytes * inputs.layers_per_stage * layer_parameters(inputs)
    seconds = moved / (inputs.hardware.hbm_bandwidth * constants.memory_efficiency)
    return float(np.asarray(seconds, dtype=float).flat[0])
