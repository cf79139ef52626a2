"""One training step in numbers: what every formula of this room reads.

Each field is a float, or an array of shape (cases,): plans of one model, or runs of many models. A formula is written
once and broadcasts over both. Switches are 1 for yes and 0 for no.
"""

from asap.prediction.step_model.inputs.model import HardwareInputs, ModelInputs, Number, PlanInputs, anywhere, select
from asap.prediction.step_model.inputs.step import StepInputs, WorkloadInputs, once

__all__ = [
    "HardwareInputs", "ModelInputs", "Number", "PlanInputs", "StepInputs", "WorkloadInputs", "anywhere", "once",
    "select",
]  # fmt: skip
