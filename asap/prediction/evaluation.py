"""All formulas over many plans of one run, in one vectorised pass."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction.calibration import Fit, Reserve
from asap.prediction.case import Case
from asap.prediction.cases import case_of
from asap.prediction.classes import Groups, allocator_class
from asap.prediction.memory import Memory, memory
from asap.prediction.region import distance_from, unseen
from asap.prediction.step import Step, step

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Evaluation:
    """Step, memory and distance of each plan; every field of theirs is an array over the plans, or a number."""

    plans: tuple[Plan, ...]
    case: Case
    step: Step
    memory: Memory
    reserve: Reserve
    distance: Vector
    fit: Fit

    @property
    def capacity(self) -> float:
        """HBM of one device, bytes."""
        return float(np.max(self.case.machine.hbm_bytes))


def evaluate(
    plans: Sequence[Plan],
    architecture: Architecture,
    workload: Workload,
    hardware: Slice,
    fit: Fit,
    fabric: str | None = None,
) -> Evaluation:
    """Evaluate plans that say what they recompute.

    Args:
        plans: plans for the devices of ``hardware``.
        architecture: complete.
        workload: batch and sequence known.
        hardware: chips and topology.
        fit: constants and residuals.
        fabric: kind of the network between nodes, where it is not the usual one.
    """
    case = case_of(plans, architecture, workload, hardware)
    groups = Groups.of(hardware, workload, fabric)
    reserve = fit.reserve(allocator_class(workload.framework, hardware.chip.kind))
    return Evaluation(
        plans=tuple(plans),
        case=case,
        step=step(case, fit.resolve_one(groups)),
        memory=memory(case).reserved(reserve.scale, reserve.reuse),
        reserve=reserve,
        distance=np.broadcast_to(distance_from(fit.region, case, unseen(fit.region, groups)), (len(plans),)),
        fit=fit,
    )
