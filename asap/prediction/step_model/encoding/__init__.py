"""Architecture, Workload, Slice and Plan as :class:`StepInputs`."""

from asap.prediction.step_model.encoding.step import hardware_inputs, model_inputs, plan_inputs, require, step_inputs
from asap.prediction.step_model.encoding.workload import OPTIMIZERS

__all__ = ["OPTIMIZERS", "hardware_inputs", "model_inputs", "plan_inputs", "require", "step_inputs"]
