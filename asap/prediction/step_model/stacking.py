"""The inputs of many steps as one."""

from collections.abc import Sequence
from dataclasses import fields
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from asap.prediction.step_model.inputs import (
    HardwareInputs,
    ModelInputs,
    Number,
    PlanInputs,
    StepInputs,
    WorkloadInputs,
)

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
    return type(parts[0])(**{name: _joined([getattr(part, name) for part in parts]) for name in names})


def _joined(values: Sequence[Number]) -> NDArray:
    single = all(isinstance(value, int | float) for value in values)
    return np.array(values) if single else np.hstack(values)
