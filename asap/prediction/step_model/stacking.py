"""The inputs of many steps as one."""

from collections.abc import Sequence
from dataclasses import fields
from typing import TypeVar

import numpy as np

from asap.prediction.step_model.inputs import HardwareInputs, ModelInputs, PlanInputs, StepInputs, WorkloadInputs

Part = TypeVar("Part", ModelInputs, WorkloadInputs, HardwareInputs, PlanInputs)


def stack(steps: Sequence[StepInputs]) -> StepInputs:
    """The inputs of many steps as one, each field an array."""
    return StepInputs(
        _stack([inputs.model for inputs in steps]),
        _stack([inputs.workload for inputs in steps]),
        _stack([inputs.hardware for inputs in steps]),
        _stack([inputs.plan for inputs in steps]),
    )


def _stack(parts: Sequence[Part]) -> Part:
    names = [field.name for field in fields(parts[0])]
    columns = {name: np.concatenate([np.atleast_1d(getattr(part, name)) for part in parts]) for name in names}
    return type(parts[0])(**columns)
