"""The step model over many plans of one run, in one vectorised pass."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.groups import Groups, allocator_class
from asap.prediction.step_model.inputs import StepInputs
from asap.prediction.step_model.memory import StepMemory, memory
from asap.prediction.step_model.step import StepTime, predict_step
from asap.prediction.uncertainty.calibration import AllocatorOverhead, Fit
from asap.prediction.uncertainty.region import distance_from, unseen_groups

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Evaluation:
    """Step time (s), memory (bytes) and distance from the calibrated region of each plan: arrays of shape (plans,)."""

    plans: tuple[Plan, ...]
    inputs: StepInputs
    step: StepTime
    memory: StepMemory
    overhead: AllocatorOverhead
    distance: Vector
    fit: Fit

    @property
    def capacity(self) -> float:
        """HBM of one device, bytes."""
        return float(np.max(self.inputs.hardware.hbm_bytes))


def evaluate_plans(
    plans: Sequence[Plan],
    architecture: Architecture,
    workload: Workload,
    hardware: Slice,
    fit: Fit,
    fabric: str | None = None,
) -> Evaluation:
    """Evaluate plans that have a rematerialisation policy.

    Args:
        plans: plans for the devices of ``hardware``.
        architecture: complete.
        workload: batch and sequence known.
        hardware: chips and topology.
        fit: constants and residuals.
        fabric: kind of the network between nodes, where it is not the usual one.
    """
    inputs = step_inputs(plans, architecture, workload, hardware)
    groups = Groups.of(hardware, workload, fabric)
    overhead = fit.overhead(allocator_class(workload.framework, hardware.chip.kind))
    return Evaluation(
        plans=tuple(plans),
        inputs=inputs,
        step=predict_step(inputs, fit.resolve_one(groups)),
        memory=memory(inputs).reserved(overhead.scale, overhead.reuse),
        overhead=overhead,
        distance=np.broadcast_to(distance_from(fit.region, inputs, unseen_groups(fit.region, groups)), (len(plans),)),
        fit=fit,
    )
