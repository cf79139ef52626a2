"""The step model over many plans of one run, in one vectorised pass."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.groups import Groups, allocator_class
from asap.prediction.step_model.inputs import StepInputs
from asap.prediction.step_model.memory import StepMemory, host_memory, memory
from asap.prediction.step_model.step import StepTime, predict_step
from asap.prediction.uncertainty.calibration import (
    AllocatorOverhead,
    Fit,
    distance_from,
    doubtful_groups,
    unseen_groups,
)
from asap.prediction.uncertainty.step_interval import Doubts, doubts_of
from asap.prediction.uncertainty.unstated import Mixture, alternatives, mixture_of

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Evaluation:
    """Step time (s), memory and host memory (bytes), distance from the calibrated region, what is not said, doubts, and
    half-width of the interval of each plan: arrays of shape (plans,), or of one value for all."""

    plans: tuple[Plan, ...]
    inputs: StepInputs
    step: StepTime
    memory: StepMemory
    overhead: AllocatorOverhead
    on_host: Vector
    distance: Vector
    mixture: Mixture
    doubts: Doubts
    half_width: Vector
    told_by: Mapping[str, str]
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
    inferred: Sequence[bool] = (),
) -> Evaluation:
    """Evaluate plans that have a rematerialisation policy.

    Args:
        plans: plans for the devices of ``hardware``.
        architecture: complete.
        workload: batch and sequence known.
        hardware: chips and topology.
        fit: constants and residuals.
        fabric: kind of the network between nodes, where it is not the usual one.
        inferred: for each plan, whether its policy is inferred; by default all are stated.
    """
    inputs = step_inputs(plans, architecture, workload, hardware)
    groups = Groups.of(hardware, workload, fabric)
    overhead = fit.overhead(allocator_class(workload.framework, hardware.chip.kind))
    step, cases = predict_step(inputs, fit.resolve_one(groups)), (len(plans),)
    others = alternatives(plans, inferred or [False] * len(plans), workload, hardware, model=architecture)
    base, read = np.broadcast_to(np.log(step.total), cases), []
    for other in others:
        total = predict_step(
            step_inputs(other.plans, other.model or architecture, other.workload, other.hardware),
            fit.resolve_one(groups),
        ).total
        read.append((other.setting, other.weight, np.broadcast_to(np.log(total), cases)))
    mixture, distance = mixture_of(base, read), distance_from(fit.region, inputs)
    doubtful = doubtful_groups(fit.region, groups, architecture.is_moe)
    doubts = doubts_of(inputs, step, distance, [doubtful], mixture.spread, [groups.framework])
    return Evaluation(
        plans=tuple(plans),
        inputs=inputs,
        step=step,
        memory=memory(inputs).reserved(overhead.scale, overhead.reuse),
        overhead=overhead,
        on_host=np.broadcast_to(host_memory(inputs), cases),
        distance=np.broadcast_to(distance + len(unseen_groups(fit.region, groups)), cases),
        mixture=mixture,
        doubts=doubts,
        half_width=np.broadcast_to(fit.step_interval.at_each(doubts), cases),
        told_by={other.setting: other.told_by for other in others},
        fit=fit,
    )
